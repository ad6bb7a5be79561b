"""What the gateway remembers, in one SQLite database."""
