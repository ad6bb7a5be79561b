"""Understanding of shell commands: what one would do, said before it runs.

`understand` parses a command with tree-sitter's bash grammar and answers with a value: read-only, destructive or
unknown, why, the paths it names, those outside the workspace, and whether it asks for a child that outlives it.
It runs nothing, reads no file and raises for no text. What it cannot prove harmless is unknown, never read-only.
"""

from engine.model import Understanding, Verdict
from engine.tools.shell.understanding import understand

__all__ = ["Understanding", "Verdict", "understand"]
