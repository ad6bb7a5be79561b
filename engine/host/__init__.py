"""The engine's doors to the machine: git, files, paths, locks."""
