"""Reading ``.gitignore`` files so that no line of one can keep a match busy.

The library's regular expressions try every way in which several wildcards can share a name, which takes time without
end for a hostile line. Where a wildcard is followed by another, the first place that fits is as good as any later one:
such an expression is rewritten to go on from there (an atomic group), and matches the same paths in linear time.
"""

import re
from collections.abc import Iterable

from pathspec import GitIgnoreSpec

_LONGEST_LINE = 4096  # as long as a path may be

# What the library writes for ``*``, for ``/**`` in the middle and for ``**/`` at the beginning.
_STAR = "[^/]*"
_MIDDLE = "(?:/.+)?"
_LEADING = "^(?:.+/)?"

# So few wildcards share nothing that takes time.
_FEW_STARS = 2
_FEW_MIDDLES = 1


def parse_patterns(content: bytes) -> GitIgnoreSpec:
    """Return the patterns of a ``.gitignore``; a line that cannot be read as one is left out."""
    lines = [line for line in content.decode("utf-8", "surrogateescape").splitlines() if len(line) <= _LONGEST_LINE]
    try:
        return spec_of(lines)
    except (ValueError, re.error):  # git passes over a range the wrong way round, too
        return spec_of([line for line in lines if _is_pattern(line)])


def spec_of(lines: Iterable[str]) -> GitIgnoreSpec:
    """Return what matches the paths that these lines mean.

    Raises:
        ValueError, re.error: one of them is no pattern.
    """
    # The other backends of the library, used where they happen to be installed, take no names that are not UTF-8.
    spec = GitIgnoreSpec.from_lines(lines, backend="simple")
    for pattern in spec.patterns:
        if pattern.regex is not None:
            pattern.regex = _tamed(pattern.regex)
    return spec


def _is_pattern(line: str) -> bool:
    try:
        spec_of([line])
    except (ValueError, re.error):
        return False
    return True


def _tamed(regex: re.Pattern[str]) -> re.Pattern[str]:
    text = regex.pattern
    if text.count(_STAR) <= _FEW_STARS and text.count(_MIDDLE) <= _FEW_MIDDLES:
        return regex
    leading = _LEADING if text.startswith(_LEADING) else ""
    pieces = text.removeprefix(leading).split(_MIDDLE)
    *first, last = [_first_fits(piece) for piece in pieces]
    # A piece that another ``**`` follows ends where a name does.
    starts = ["^(?:.+?/)??" if leading else "", *("(?:/.+?)??" for _piece in first)]
    opened = "".join(f"(?>{start}{piece}(?=/))" for start, piece in zip(starts, first, strict=False))
    return re.compile(opened + (_MIDDLE if first else leading) + last)


def _first_fits(piece: str) -> str:
    """Have each ``*`` that another one follows end where what stands between them fits first."""
    begin, *chunks = re.sub(r"(?:\[\^/\]\*)+", lambda _run: "\0", piece).split("\0")
    if not chunks:
        return begin
    *between, end = chunks
    return begin + "".join(f"(?>{_STAR}?{chunk})" for chunk in between) + _STAR + end
