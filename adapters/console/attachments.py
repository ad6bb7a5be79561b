"""Puts the files that replies carry where a person at the terminal can open them."""

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime

from adapters.contract import Attachment

KEPT_FILES = 50
"""Older ones go when a new one is saved; each can be made again by the command that made it."""


class AttachmentDirectory:
    """A directory that holds the newest attachments, readable by their owner alone."""

    def __init__(self, path: str, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._path = path
        self._now = now

    def save(self, attachment: Attachment) -> str:
        """Write a file under a name of its own and return its path; blocking.

        Raises:
            OSError: it could not be written.
        """
        os.makedirs(self._path, mode=0o700, exist_ok=True)
        stamp = self._now().strftime("%Y%m%d-%H%M%S-%f")
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", os.path.basename(attachment.name)).lstrip(".")[-80:] or "file"
        path = os.path.join(self._path, f"{stamp}-{name}")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(attachment.content)
        self._forget_oldest()
        return path

    def _forget_oldest(self) -> None:
        for name in sorted(os.listdir(self._path))[:-KEPT_FILES]:
            # Another terminal may be tidying up too.
            with_path = os.path.join(self._path, name)
            if os.path.isfile(with_path):
                os.remove(with_path)
