"""A text that every line has in it that a regular expression fits: what a fast program can look for first.

It errs to the side of finding none, which costs time alone.
"""

import re
from typing import Final

from engine.model import Wanted

SHORTEST: Final = 3
"""A shorter text is in nearly every file."""

# Where case is ignored, i, k and s stand for letters beyond ASCII too, and those for them.
_FOLDING = re.compile(r"[iks]|[^\x00-\x7f]", re.IGNORECASE)
_OPTIONAL = frozenset("?*{")
_UNCERTAIN = re.compile(r"[|\[]|\(\?|\\[0-9A-Za-z]|[^\x00-\x7f]|\)[?*{]")
_RUN = re.compile(r"(?:\\[^0-9A-Za-z]|[^\\.^$*+?{}()|\[\]])+")


def literal_of(wanted: Wanted) -> str | None:
    """Return the longest such text that can be told; ``None`` for none."""
    runs = [wanted.pattern] if wanted.literal else _runs(wanted.pattern)
    if wanted.ignore_case:
        runs = [part for run in runs for part in _FOLDING.split(run)]
    longest = max(runs, key=len, default="")
    return longest if len(longest) >= SHORTEST and longest.isprintable() and "\ufffd" not in longest else None


def _runs(pattern: str) -> list[str]:
    """The plain runs of an expression without choices, sets, and anything else that is not plain at sight."""
    if _UNCERTAIN.search(pattern):
        return []
    runs = []
    for found in _RUN.finditer(pattern):
        run = re.sub(r"\\(.)", r"\1", found.group())
        if pattern[found.end() : found.end() + 1] in _OPTIONAL:
            run = run[:-1]
        runs.append(run)
    return runs
