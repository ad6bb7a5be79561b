"""What the file tools need of a place where files are: a workspace on the host, or the one in a sandbox.

``engine.host.files.Tree`` is the first, and says what each method promises; ``sandbox.SandboxTree`` is the other.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import BinaryIO, Protocol

from engine.host.signatures import Expected, Signature


class FileTree(Protocol):
    """A tree of files below a root; paths are relative to it."""

    @property
    def root(self) -> str:
        """The absolute path of the root, for people."""
        ...

    def resolve(self, directory: str, named: str) -> str:
        """Turn a name, seen from a directory below the root, into a path; ``""`` is the root itself.

        Symlinks among the parents are followed and must not lead outside. Raises ``PathUnsafe``.
        """
        ...

    def signature(self, path: str) -> Signature | None:
        """Sign what stands at a path; ``None`` for nothing."""
        ...

    def open_file(self, path: str) -> BinaryIO:
        """Open a regular file for reading."""
        ...

    def read_link(self, path: str) -> bytes:
        """Return the target of a symlink."""
        ...

    def entries(self, path: str) -> list[tuple[str, Signature]]:
        """Return names and signatures of what a directory holds, sorted by name."""
        ...

    def look_below(self, path: str, without: Collection[str], reading: str) -> None:
        """Learn in one go what lies below a directory, where each look takes a moment.

        Directories of a name in ``without`` are left out; files named ``reading`` will be read.
        """
        ...

    def contents(self, paths: Sequence[str], limit_bytes: int) -> Iterator[tuple[str, bytes]]:
        """Yield what regular files hold, in the order asked; what is larger or cannot be read is left out."""
        ...

    def write_file(self, path: str, chunks: Iterable[bytes], mode: int, *, expected: Expected = ...) -> Signature:
        """Put a regular file at a path, or leave it as it is."""
        ...

    def remove_file(self, path: str, *, expected: Expected = ...) -> None:
        """Remove a file."""
        ...

    def ensure_parents(self, path: str) -> Sequence[str]:
        """Make the missing parents of a path; return those made, top first."""
        ...

    def remove_directory(self, path: str) -> bool:
        """Remove an empty directory; ``False`` when it is not empty."""
        ...
