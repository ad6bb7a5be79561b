"""What an agent runs: shell commands, and finding, reading, writing and patching files."""
