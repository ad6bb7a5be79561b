"""Applying the hunks of a unified diff to the content of one file."""

from collections.abc import Sequence

from engine.errors import ToolRefused
from engine.tools.patch.lines import adapt_newlines, describe_nearest, describe_places, find_runs, split_lines
from engine.tools.patch.unified import Hunk


def apply_hunks(name: str, content: bytes, hunks: Sequence[Hunk]) -> bytes:
    """Return the new content; ``name`` is what to call the file in a refusal (``ToolRefused``)."""
    lines = split_lines(content)
    made: list[bytes] = []
    done = 0
    for number, hunk in enumerate(hunks, start=1):
        subject = f"{name}, hunk {number} ({hunk.header})"
        index, old, new = _place(subject, lines, done, hunk)
        made += lines[done:index] + new
        done = index + len(old)
    made += lines[done:]
    if any(not line.endswith(b"\n") for line in made[:-1]):
        raise ToolRefused(name, "the diff says where the file ends without a newline, but the file goes on there")
    return b"".join(made)


def _place(subject: str, lines: list[bytes], done: int, hunk: Hunk) -> tuple[int, list[bytes], list[bytes]]:
    """Find where a hunk fits, at ``done`` or after it; return the place and both sides as they fit there."""
    adapted = (adapt_newlines(hunk.old, lines), adapt_newlines(hunk.new, lines))
    if not hunk.old:
        # No line tells what line ends the diff was made with: those of its header do.
        return _place_by_number(subject, lines, done, hunk), [], adapted[1] if hunk.windows else hunk.new
    for old, new in ((hunk.old, hunk.new), adapted):
        if hunk.start is not None and hunk.start >= done and lines[hunk.start : hunk.start + len(old)] == old:
            return hunk.start, old, new
        runs = find_runs(lines, old, done)
        if len(runs) == 1:
            return runs[0], old, new
        if runs:
            raise ToolRefused(
                subject, f"fits in {len(runs)} places ({describe_places(runs)}); give it more lines of context"
            )
    raise ToolRefused(subject, f"its lines are not in the file. {_describe(lines, adapted[0], done)}")


def _place_by_number(subject: str, lines: list[bytes], done: int, hunk: Hunk) -> int:
    if hunk.start is None and not lines:
        return 0
    if hunk.start is None:
        raise ToolRefused(subject, "has no lines to find its place by; give it some context")
    if not done <= hunk.start <= len(lines):
        raise ToolRefused(subject, f"starts after line {hunk.start}, but the file has {len(lines)} lines")
    return hunk.start


def _describe(lines: list[bytes], old: list[bytes], done: int) -> str:
    if find_runs(lines, old):
        return f"They stand only before line {done + 1}, where an earlier hunk ends; are the hunks in order?"
    if lines and lines[-1] + b"\n" in old and lines[-1] not in old:
        return r"The file's last line has no newline at its end; the diff needs '\ No newline at end of file' there."
    return describe_nearest(lines, old)
