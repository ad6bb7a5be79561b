"""The files as a patch would leave them: each later part of a patch works on what the earlier ones made."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.errors import ToolRefused
from engine.host.files import ContentChanged, Signature
from engine.host.paths import display
from engine.tools.edits import Edit, FileEdit, FileRemoval, find_target
from engine.tools.files import NEW_FILE_MODE, UMASK
from engine.tools.filetree import FileTree

FILE_LIMIT_BYTES: Final = 64 * 1024 * 1024
"""The largest file that is patched; it is held in memory."""


@dataclass(slots=True)
class _State:
    """One file: what stands there, what it held, and what it would hold; ``None`` for nothing.

    ``base`` and ``base_mode`` are what it would hold before the part of the patch that is being worked in.
    """

    before: Signature | None
    original: bytes | None
    content: bytes | None
    mode: int
    base: bytes | None
    base_mode: int


class Draft:
    """Reads files when they are first named, and keeps every change in memory."""

    def __init__(self, tree: FileTree, resolve: Callable[[str], str]) -> None:
        self._tree = tree
        self._resolve = resolve
        self._states: dict[str, _State] = {}

    def find(self, named: str) -> str:
        """Return the path that a name in the patch means, symlinks followed; ``ToolRefused`` where no file can be."""
        path, before = find_target(self._tree, self._resolve(named))
        if path not in self._states:
            content = None if before is None else self._read(path, before)
            mode = NEW_FILE_MODE & ~UMASK if before is None else before.mode
            self._states[path] = _State(before, content, content, mode, content, mode)
        return path

    def begin_part(self) -> None:
        """Let what was worked in so far be the base of what comes."""
        for state in self._states.values():
            state.base, state.base_mode = state.content, state.mode

    def base(self, path: str) -> tuple[bytes | None, int]:
        """Return content and permission bits of a file before this part of the patch."""
        return self._states[path].base, self._states[path].base_mode

    def content(self, path: str) -> bytes | None:
        """Return what a file holds by now; ``None`` where there is none."""
        return self._states[path].content

    def mode(self, path: str) -> int:
        """Return the permission bits a file has by now, or would have if it were made."""
        return self._states[path].mode

    def write(self, path: str, content: bytes, mode: int) -> None:
        """Let a file hold this."""
        self._states[path].content = content
        self._states[path].mode = mode

    def remove(self, path: str) -> None:
        """Let a file be gone."""
        self._states[path].content = None

    def edits(self) -> list[Edit]:
        """Return what has to be changed: first what is written, so that a rename cut short loses no content."""
        edits: list[Edit] = []
        removals: list[Edit] = []
        for path, state in self._states.items():
            if state.content is None:
                if state.before is not None:
                    removals.append(FileRemoval(path, state.before))
            elif state.before is None or (state.content, state.mode) != (state.original, state.before.mode):
                edits.append(FileEdit(path, state.before, state.content, state.mode))
        return edits + removals

    def _read(self, path: str, before: Signature) -> bytes:
        if before.size > FILE_LIMIT_BYTES:
            raise ToolRefused(display(path), f"is larger than {FILE_LIMIT_BYTES} bytes; change it with a command")
        with self._tree.open_file(path) as file:
            content = file.read()
        found = self._tree.signature(path)
        if found != before:
            raise ContentChanged(path, found)
        return content
