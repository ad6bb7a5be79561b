"""One turn from beginning to end: its place, its tools, its questions, its history, and what is said of it."""
