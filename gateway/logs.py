"""The gateway's own log: where it goes, how a line looks, and what never gets into it.

Modules log through ``logging.getLogger(__name__)`` with ids in ``extra``, never with the content of a message. Lines
are written by a thread of their own, so that a slow disk holds up nobody.
"""

import json
import logging
import os
import queue
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener
from typing import IO, Any

LARGEST_FILE_BYTES = 5 * 1024 * 1024
"""A larger file is set aside at the next start, as ``.1``; the one set aside before it goes."""
HIDDEN = "***"
OURS = ("gateway", "engine", "adapters")
"""Whose debug lines are written. Libraries tell everything in theirs: statements with their values, whole messages."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    """One line a record, as text or JSON, with the ids that came in ``extra``; known secrets are blotted out."""

    def __init__(self, *, as_json: bool, secrets: Iterable[str] = ()) -> None:
        super().__init__()
        self._as_json = as_json
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        """Make the line."""
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        head = {"at": moment, "level": record.levelname.lower(), "logger": record.name, "event": record.getMessage()}
        if record.exc_info and record.exc_info[0]:
            extra["error"] = "".join(traceback.format_exception(*record.exc_info)).rstrip()
        line = json.dumps({**head, **extra}, default=str) if self._as_json else _text(head, extra)
        return hidden(line, self._secrets)


def hidden(text: str, secrets: Iterable[str], mark: str = HIDDEN) -> str:
    """A text with every known secret blotted out."""
    # The longest first, so that a secret that contains another goes as a whole.
    for secret in sorted({secret for secret in secrets if secret}, key=len, reverse=True):
        text = text.replace(secret, mark)
    return text


def _text(head: dict[str, str], extra: dict[str, Any]) -> str:
    """``2026-03-16T04:36:00.000+00:00 warning gateway.app: what happened chat=local``."""
    error = extra.pop("error", None)
    ids = "".join(f" {name}={_word(value)}" for name, value in extra.items())
    event = head["event"].replace("\n", "\\n")
    line = f"{head['at']} {head['level']} {head['logger']}: {event}{ids}"
    return line if error is None else f"{line}\n{error}"


def _word(value: object) -> str:
    text = str(value)
    return text if text and not any(mark in text for mark in ' "\n=') else json.dumps(text)


@contextmanager
def logging_to(
    path: str | None, *, level: str = "info", as_json: bool = False, secrets: Iterable[str] = ()
) -> Iterator[None]:
    """Send the log of this process to a file, or to stderr without one, until the block ends.

    A file that cannot be written is said on stderr, and the program goes on without it.
    """
    stream = _open(path)
    target = logging.StreamHandler(stream)
    target.setFormatter(LineFormatter(as_json=as_json, secrets=secrets))
    lines: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    listener = QueueListener(lines, target)
    handler = _Unchanged(lines)
    root = logging.getLogger()
    levels = {logger: logger.level for logger in (root, *map(logging.getLogger, OURS))}
    root.addHandler(handler)
    for logger in levels:
        logger.setLevel(level.upper())
    root.setLevel(max(root.level, logging.INFO))
    logging.captureWarnings(capture=True)
    listener.start()
    try:
        yield
    finally:
        logging.captureWarnings(capture=False)
        root.removeHandler(handler)
        for logger, before in levels.items():
            logger.setLevel(before)
        listener.stop()
        if stream is not sys.stderr:
            stream.close()


class _Unchanged(QueueHandler):
    """Hands records over as they are; formatting happens in the listener's thread."""

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record


def _open(path: str | None) -> IO[str]:
    if path is None:
        return sys.stderr
    try:
        if os.path.exists(path) and os.path.getsize(path) > LARGEST_FILE_BYTES:
            os.replace(path, path + ".1")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        sys.stderr.write(f"gateway: the log {path} cannot be written ({error.strerror}); going on without it\n")
        return open(os.devnull, "w", encoding="utf-8")
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace")
