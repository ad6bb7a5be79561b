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

PATTERN_S: Final = 10
"""How many seconds a process may have to do with a pattern."""

LIMIT_S: Final = 30.0
"""After this no more texts are looked at."""

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


_SIMPLER = "Write a pattern that repeats less, or search for plain text"


@dataclass(frozen=True, slots=True)
class Found:
    """A line that fits, by its number; ``text`` is at most so much of it as is shown and one character more."""

    path: str
    number: int
    text: str


class OutOfTime(Exception):
    """A search that took too long ended at a text; what follows was not looked at."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"no more was looked at after {path}")


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
        ToolRefused: the pattern takes too long, or the search was stopped.
        OutOfTime: what follows was not looked at any more.
    """
    until = monotonic() + LIMIT_S
    for batch in _batches(texts, until):
        if stop.stopped:
            raise ToolRefused("the search", "was stopped")
        for found in _judge(wanted, batch, most):
            most -= 1
            yield found
        if most <= 0:
            return
        if monotonic() > until:
            raise OutOfTime(batch[-1][0])


def _judge(wanted: Wanted, batch: list[tuple[str, bytes]], most: int) -> Iterator[Found]:
    asked = {"pattern": _expression(wanted), "ignore_case": wanted.ignore_case, "limit_s": PATTERN_S}
    header = {**asked, "most": most, "shown": LINE_CHARACTERS}
    sent = b"".join(_framed(piece) for piece in (json.dumps(header).encode(), *(content for _, content in batch)))
    program = [sys.executable, "-I", "-S", "-W", "ignore", "-c", _PROGRAM]
    try:
        # Its own limit is of computing time; on a busy machine it may take longer.
        done = call_client(program, {}, stdin=sent, timeout_s=2 * PATTERN_S)
    except NotStarted as error:
        raise ToolRefused("the search", f"{error.reason}. {_SIMPLER}") from None
    if done.exit_code:
        raise ToolRefused("the search", f"took longer than {PATTERN_S} s. {_SIMPLER}")
    for line in done.output.splitlines():
        text, number, shown = json.loads(line)
        yield Found(batch[text][0], number, shown)


def _expression(wanted: Wanted) -> str:
    return re.escape(wanted.pattern) if wanted.literal else wanted.pattern


def _batches(texts: Iterable[tuple[str, bytes]], until: float) -> Iterator[list[tuple[str, bytes]]]:
    """Share texts out over processes; when time is over the last of them are looked at that have been read."""
    batch, size = [], 0
    for text in texts:
        batch.append(text)
        size += len(text[1])
        if size >= BATCH_BYTES or monotonic() > until:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _framed(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content
