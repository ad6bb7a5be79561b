"""What answers a turn."""
