"""Small files of our own that survive a crash: whole old or whole new content, never a torn one."""

import json
import os
import secrets
from contextlib import suppress
from typing import Any

TEMPORARY_PREFIX = ".tmp-"


def write_bytes(path: str, content: bytes) -> None:
    """Replace a file atomically and durably, mode 0600.

    Raises:
        OSError: the old content is still there.
    """
    directory = os.path.dirname(path)
    temporary = os.path.join(directory, f"{TEMPORARY_PREFIX}{secrets.token_hex(6)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(temporary, path)
    except BaseException:
        with suppress(OSError):  # what failed is told, and a prune sweeps what is left
            os.unlink(temporary)
        raise
    sync_directory(directory)


def write_json(path: str, value: Any) -> None:
    """Replace a JSON file atomically and durably; lone surrogates are kept as escapes."""
    write_bytes(path, json.dumps(value, separators=(",", ":")).encode("ascii"))


def read_json(path: str) -> Any:
    """Return a JSON file's value, ``None`` when the file is missing.

    Raises:
        ValueError: the file is not JSON.
    """
    try:
        with open(path, "rb") as stream:
            return json.loads(stream.read())
    except FileNotFoundError:
        return None


def remove(path: str) -> None:
    """Remove a file durably; a missing one is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    sync_directory(os.path.dirname(path))


def sync_directory(path: str) -> None:
    """Make renames and removals in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
