"""Files that people send: kept in a directory of the workspace that no capture takes in and git is told to ignore.

Each is written once, under a name that the caller makes unique. No symlink is followed.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Final

from engine.errors import ToolRefused
from engine.host.files import ContentChanged, Tree
from engine.host.paths import PathUnsafe, display
from engine.model import ToolCall
from engine.store.layout import RESERVED
from engine.tools.edits import Edit, FileEdit, apply_edits
from engine.tools.files import NEW_FILE_MODE
from engine.tools.filetree import FileTree

FOLDER: Final = f"{RESERVED}/inbox"
"""Where they are kept."""

LARGEST_BYTES: Final = 100 * 1024 * 1024
"""No larger file is read; which are kept at all the caller decides."""

_IGNORE_FILE = f"{RESERVED}/.gitignore"
_IGNORES_ALL = b"*\n"

OpenFiles = Callable[[ToolCall], AbstractContextManager[FileTree]]
"""Opens the files that a call means: the workspace's on the host, or those in its sandbox."""


class SentFiles:
    """Keeps, reads and removes what was sent."""

    def __init__(self, files: OpenFiles) -> None:
        self._files = files

    def path_of(self, name: str) -> str:
        """Return where a file of a name is kept; the name is one component of a path."""
        return f"{FOLDER}/{name}"

    def keep(self, call: ToolCall, path: str, content: bytes) -> None:
        """Write a file at its path.

        Raises:
            ToolRefused: it was not kept.
        """
        try:
            with self._files(call) as tree:
                edits: list[Edit] = [FileEdit(path, None, content, NEW_FILE_MODE)]
                if tree.signature(_IGNORE_FILE) is None:
                    edits.append(FileEdit(_IGNORE_FILE, None, _IGNORES_ALL, NEW_FILE_MODE))
                apply_edits(tree, edits)
        except (PathUnsafe, ContentChanged) as error:
            raise ToolRefused(display(path), f"was not kept: {error}") from error
        except OSError as error:
            raise ToolRefused(display(path), f"was not kept: {error.strerror or error}") from error

    def read(self, call: ToolCall, path: str) -> bytes | None:
        """Return what a kept file holds; ``None`` where it is not there (any more)."""
        if not is_sent(path):
            return None
        with suppress(PathUnsafe, OSError, ToolRefused), self._files(call) as tree:
            found = tree.signature(path)
            if found is not None and found.is_file and found.size <= LARGEST_BYTES:
                with tree.open_file(path) as file:
                    return file.read(LARGEST_BYTES)
        return None

    def remove(self, root: str, paths: Iterable[str]) -> None:
        """Remove kept files below a root of this host, those that are there; nothing else is touched."""
        with suppress(FileNotFoundError, NotADirectoryError), Tree.open(root) as tree:
            for path in filter(is_sent, paths):
                found = tree.signature(path)
                if found is not None and found.is_file:
                    with suppress(FileNotFoundError, PathUnsafe, ContentChanged):
                        tree.remove_file(path, expected=found)


def is_sent(path: str) -> bool:
    """Whether a file that was sent would be kept at a path."""
    parts: Sequence[str] = path.split("/")
    return "/".join(parts[:-1]) == FOLDER and parts[-1] not in {"", ".", ".."}
