"""Which lines of texts a regular expression fits: judged by a process of its own, which can be ended.

A pattern can keep an interpreter busy for ever, and with it every thread of the program. The process gets texts through
a pipe and opens no file.
"""

import json
import re
import struct
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Final

from engine.backends.base import StopSignal
from engine.backends.client import call_client
from engine.backends.conversation import NotStarted
from engine.errors import ToolRefused
from engine.model import Wanted

LIMIT_S: Final = 10
"""How many seconds all of a search may take."""

BATCH_BYTES: Final = 8 * 1024 * 1024
"""How much one process is given; a stop is noticed between two."""

LINE_CHARACTERS: Final = 300
"""How much of a line that fits is shown."""

# It reads a header and then texts, each with its length before it, and writes a line of JSON for each line that fits.
# Left alone with a pattern that never ends it is ended by the system.
_PROGRAM: Final = """\
import json, re, resource, struct, sys
read = sys.stdin.buffer.read
def next_piece():
    size = read(4)
    return read(struct.unpack(">I", size)[0]) if size else None
asked = json.loads(next_piece())
resource.setrlimit(resource.RLIMIT_CPU, (asked["limit_s"],) * 2)
fits = re.compile(asked["pattern"], re.IGNORECASE if asked["ignore_case"] else 0).search
left, number_of_text = asked["most"], 0
while left and (content := next_piece()) is not None:
    lines = content.decode("utf-8", "replace").split("\\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        line = line.removesuffix("\\r")
        if left and fits(line):
            print(json.dumps([number_of_text, number, line[: asked["shown"] + 1]]))
            left -= 1
    number_of_text += 1
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A line that fits, by its number; ``text`` is at most so much of it as is shown and one character more."""

    path: str
    number: int
    text: str


def check(wanted: Wanted) -> None:
    """Raise ``ToolRefused`` where a pattern is none."""
    if not wanted.pattern:
        raise ToolRefused("the pattern", "is empty; say what to look for")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(_expression(wanted))
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolRefused(
            f"the pattern {wanted.pattern[:80]!r}", f"is no regular expression ({error}); for plain text say so"
        ) from None


def iter_matches(wanted: Wanted, texts: Iterable[tuple[str, bytes]], most: int, stop: StopSignal) -> Iterator[Found]:
    """Yield the lines that fit, at most so many, text by text in the order given.

    Raises:
        ToolRefused: it took too long or was stopped.
    """
    until = monotonic() + LIMIT_S
    for batch in _batches(texts):
        if stop.stopped:
            raise ToolRefused("the search", "was stopped")
        for found in _judge(wanted, batch, most, until - monotonic()):
            most -= 1
            yield found
        if most <= 0:
            return


def _judge(wanted: Wanted, batch: list[tuple[str, bytes]], most: int, left_s: float) -> Iterator[Found]:
    asked = {"pattern": _expression(wanted), "ignore_case": wanted.ignore_case, "limit_s": LIMIT_S}
    header = {**asked, "most": most, "shown": LINE_CHARACTERS}
    sent = b"".join(_framed(piece) for piece in (json.dumps(header).encode(), *(content for _, content in batch)))
    program = [sys.executable, "-I", "-S", "-W", "ignore", "-c", _PROGRAM]
    try:
        done = call_client(program, {}, stdin=sent, timeout_s=max(left_s, 0.01))
    except NotStarted:
        raise ToolRefused(
            "the search", f"took longer than {LIMIT_S} s; name a narrower path, or a pattern that repeats less"
        ) from None
    if done.exit_code:
        raise ToolRefused("the search", f"broke off (exit code {done.exit_code})")
    for line in done.output.splitlines():
        text, number, shown = json.loads(line)
        yield Found(batch[text][0], number, shown)


def _expression(wanted: Wanted) -> str:
    return re.escape(wanted.pattern) if wanted.literal else wanted.pattern


def _batches(texts: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    batch, size = [], 0
    for text in texts:
        batch.append(text)
        size += len(text[1])
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _framed(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content
