"""The local terminal as a chat platform: a prompt for people, lines for pipes, JSON lines for programs."""
