"""Bringing files back: a plan that can be printed, then its execution, then its recovery after a crash."""
