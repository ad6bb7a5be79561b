"""Long work on a terminal: how far it is, and Ctrl-C as a request to stop after the step under way."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from gateway.cli.humane import size

if TYPE_CHECKING:
    from engine.api import Step

BAR_WIDTH = 24
_USUAL_COLUMNS = 80


@dataclass(frozen=True, slots=True)
class Watch:
    """What long work is given: whom to tell how far it is, and whom to ask whether to go on."""

    progress: "Callable[[Step], None]"
    cancelled: Callable[[], bool]


@contextmanager
def watched(*, shown: bool) -> Iterator[Watch]:
    """Show progress on stderr where that is a terminal and ``shown``; the first Ctrl-C asks, the second interrupts."""
    asked: list[bool] = []

    def ask(number: int, frame: FrameType | None) -> None:
        if asked:
            signal.default_int_handler(number, frame)
        asked.append(True)
        sys.stderr.write("\nStopping after this step; Ctrl-C again interrupts it.\n")

    visible = shown and sys.stderr.isatty()
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield Watch(_show if visible else _hide, lambda: bool(asked))
    finally:
        signal.signal(signal.SIGINT, before)
        if visible:
            sys.stderr.write("\r\x1b[K")


def _show(step: "Step") -> None:
    # A line that wraps could not be taken back; some terminals wrap after the last column.
    sys.stderr.write(f"\r\x1b[K{line(step)[: _columns() - 1]}")
    sys.stderr.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_COLUMNS
    except OSError:
        return _USUAL_COLUMNS


def _hide(_step: "Step") -> None:
    """Progress is for people; scripts get the result."""


def line(step: "Step") -> str:
    """``proving checkpoints  [########                ]  12/36  4.2 MB``."""
    count = f"{step.done}" if step.total is None else f"{step.done}/{step.total}"
    parts = [step.what]
    if step.total:
        filled = BAR_WIDTH * min(step.done, step.total) // step.total
        parts.append(f"[{'#' * filled:<{BAR_WIDTH}}]")
    parts.append(count)
    if step.size_bytes:
        parts.append(size(step.size_bytes))
    return "  ".join(parts)
