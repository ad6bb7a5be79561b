"""Keeping the store small and healthy."""
