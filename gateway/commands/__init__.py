"""The chat commands, a module per noun."""
