"""Keeping the service running: adapters, health, metrics, housekeeping, and what a start or another process needs."""
