"""What an agent runs: shell commands, and reading, writing and patching files."""
