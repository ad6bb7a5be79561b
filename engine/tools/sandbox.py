"""The files of a sandbox, read and changed by short programs that run inside it.

POSIX sh, and of the rest only what busybox has too (``stat -c``, ``mv -T``). Each call of a program takes a moment, so
one look at a path learns all there is to know of it and its parents, and a write makes its parents, checks and installs
in one. What was learned holds as long as the tree: one call of a tool. A write checks again.

A name is refused here where it leaves the workspace, so that tools mean what they say; what commands may reach is the
sandbox's own business.
"""

import errno
import io
import os
import posixpath
import re
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import BinaryIO, Final

from engine.backends.base import Executed, Sandbox
from engine.errors import ToolRefused
from engine.host.files import ANY, TEMP_PREFIX, ContentChanged, Expected, Signature
from engine.host.paths import PathUnsafe, display, is_repository_part, require_name, validate, within
from engine.tools import survey

_SHELL: Final = "/bin/sh"
_NOTHING: Final = "-"
_OUTSIDE: Final = 93
_CHANGED: Final = 94
_NO_ROOT: Final = 95
_STAT_FIELDS = 6
_SMALL_BYTES = 1024 * 1024

_PRELUDE: Final = r"""
LC_ALL=C; export LC_ALL
sign() { if [ -e "./$1" ] || [ -L "./$1" ]; then stat -c '%f %s %Y %Z %i %d' -- "./$1"; else echo -; fi; }
cd -P -- "$1" || exit 95
root=$PWD
enter() { cd -P -- "./$1" 2>/dev/null; }
inside() { case "$PWD/" in "${root%/}"/*) ;; *) exit 93 ;; esac; }
"""

# Walks as far as there are directories, then tells where that is, what is left, and what stands first there.
_LOOK: Final = (
    _PRELUDE
    + r"""
rest=$2
while :; do
    part=${rest%%/*}
    [ "$part" != "$rest" ] || break
    enter "$part" || break
    inside
    rest=${rest#*/}
done
[ -n "$rest" ] || rest=. part=.
printf '%s\0%s\0%s\0' "$root" "$PWD" "$rest"
sign "$part" || exit 1
printf '\0'
[ ! -L "./$part" ] || readlink -n -- "./$part"
"""
)

_LIST: Final = (
    _PRELUDE
    + r"""
enter "$2" || exit 1
inside
for name in .* *; do
    case $name in .|..) continue ;; esac
    { [ -e "./$name" ] || [ -L "./$name" ]; } || continue
    printf '%s\0' "$name"
    sign "$name"
    printf '\0'
done
"""
)

_READ: Final = _PRELUDE + 'enter "$2" || exit 1\ninside\nexec cat -- "./$3"\n'

_LINK: Final = _PRELUDE + 'enter "$2" || exit 1\ninside\nexec readlink -n -- "./$3"\n'

# $2 directory, $3 name, $4 mode, $5 what has to stand there, $6 temporary name; made directories are told one a line.
_WRITE: Final = (
    _PRELUDE
    + r"""
umask 022
parents=$2
while [ -n "$parents" ]; do
    part=${parents%%/*}
    [ -d "./$part" ] || mkdir -- "./$part" || exit 1
    enter "$part" || exit 1
    inside
    case $parents in */*) parents=${parents#*/} ;; *) parents= ;; esac
done
trap 'rm -f -- "./$6"' EXIT
trap 'exit 1' HUP INT TERM
umask 077
set -C
cat >"./$6" || exit 1
found=$(sign "$3")
[ "$5" = any ] || [ "$5" = "$found" ] || { printf '%s\n' "$found"; exit 94; }
[ ! -d "./$3" ] || [ -L "./$3" ] || exit 94
if [ "$found" != - ]; then chown "$(stat -c '%u:%g' -- "./$3")" "./$6" 2>/dev/null; fi
chmod "$4" "./$6" || exit 1
if [ "$5" = - ] && ln -- "./$6" "./$3" 2>/dev/null; then rm -f -- "./$6"; else mv -fT -- "./$6" "./$3" || exit 1; fi
trap - EXIT
sign "$3"
"""
)

_REMOVE: Final = (
    _PRELUDE
    + r"""
enter "$2" || exit 1
inside
found=$(sign "$3")
[ "$4" = any ] || [ "$4" = "$found" ] || { printf '%s\n' "$found"; exit 94; }
rm -f -- "./$3"
"""
)

_REMOVE_DIRECTORY: Final = _PRELUDE + 'enter "$2" || exit 1\ninside\nrmdir -- "./$3" 2>/dev/null\n'

_MISSING = re.compile(rb"No such file or directory\s*$")


class SandboxTree:
    """The workspace inside a sandbox; see ``filetree.FileTree`` for the methods.

    All raise ``PathUnsafe`` for a path that leads outside, ``ContentChanged`` where ``expected`` does not hold, and
    ``OSError`` for what the sandbox refuses, with nothing half-done.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self.root = sandbox.workdir
        self._sandbox = sandbox
        self._known: dict[str, Signature | None] = {}
        self._links: dict[str, bytes] = {}
        self._surveyed: survey.Entries = {}
        self._read: dict[str, bytes] = {}

    def resolve(self, directory: str, named: str) -> str:
        """Turn a name into a path below the root."""
        require_name(named)
        joined = posixpath.normpath(posixpath.join(self.root, directory, named))
        if not within(joined, self.root):
            raise PathUnsafe(named, "is outside the workspace of the sandbox")
        below = "" if joined == self.root else joined[len(self.root.rstrip("/")) + 1 :]
        found = self._look(below) if below else ""
        if any(is_repository_part(part) for part in (*below.split("/"), *found.split("/"))):
            raise PathUnsafe(named, "belongs to git, which is never touched")
        return found

    def signature(self, path: str) -> Signature | None:
        """Sign what stands at a path."""
        if path not in self._known:
            if path:
                validate(path)
            if self._look(path) != path:
                return None  # a parent is a symlink
        return self._known.get(path)

    def open_file(self, path: str) -> BinaryIO:
        """Return the content of a file."""
        if path in self._read:
            return io.BytesIO(self._read[path])
        done = self._run(_READ, *_split(path))
        if done.exit_code:
            raise _error(done, path)
        return io.BytesIO(done.output)

    def read_link(self, path: str) -> bytes:
        """Return the target of a symlink."""
        if path not in self._links:
            done = self._run(_LINK, *_split(path))
            if done.exit_code:
                raise _error(done, path)
            self._links[path] = done.output
        return self._links[path]

    def entries(self, path: str) -> list[tuple[str, Signature]]:
        """Return names and signatures of what a directory holds."""
        if path in self._surveyed:
            return self._surveyed[path]
        done = self._run(_LIST, path or ".")
        if done.exit_code:
            raise _error(done, path)
        pieces = done.output.split(b"\0")
        found = zip(pieces[0::2], pieces[1::2], strict=False)
        signed = [(os.fsdecode(name), _parse(text)) for name, text in found]
        return sorted((name, signature) for name, signature in signed if signature is not None)

    def look_below(self, path: str, without: Collection[str], reading: str) -> None:
        """Learn in one go what lies below a directory, and what the files named ``reading`` hold."""
        self._surveyed = survey.look(self._run, path, without, _parse)
        for directory, entries in self._surveyed.items():
            self._known |= {_join(directory, name): found for name, found in entries}
        paths = [_join(directory, reading) for directory in self._surveyed]
        self._read = dict(self.contents(paths, _SMALL_BYTES))

    def contents(self, paths: Sequence[str], limit_bytes: int) -> Iterator[tuple[str, bytes]]:
        """Yield what regular files hold, in the order asked; what is larger or cannot be read is left out."""
        known = [(path, self._known.get(path)) for path in paths]
        sizes = [(path, found.size) for path, found in known if found is not None and found.is_file]
        for path, content in survey.read(self._run, [item for item in sizes if item[1] <= limit_bytes]):
            if len(content) <= limit_bytes:
                yield path, content

    def holding(self, paths: Sequence[str], text: str) -> list[str] | None:
        """Return those of some files that hold a text; ``None`` where that cannot be told."""
        return survey.hold(self._run, paths, text)

    def write_file(self, path: str, chunks: Iterable[bytes], mode: int, *, expected: Expected = ANY) -> Signature:
        """Put a regular file at a path, in one step, making its parents."""
        directory, name = _split(path)
        temp = f"{TEMP_PREFIX}{secrets.token_hex(8)}"
        done = self._run(
            _WRITE,
            "" if directory == "." else directory,
            name,
            f"{mode:o}",
            _told(expected),
            temp,
            stdin=b"".join(chunks),
        )
        self._forget(path)
        if done.exit_code:
            raise _error(done, path)
        made = _parse(done.output)
        if made is None:
            raise ContentChanged(path, None)
        self._known[path] = made
        return made

    def remove_file(self, path: str, *, expected: Expected = ANY) -> None:
        """Remove a file."""
        done = self._run(_REMOVE, *_split(path), _told(expected))
        self._forget(path)
        if done.exit_code:
            raise _error(done, path)

    def ensure_parents(self, path: str) -> Sequence[str]:
        """Name the parents that ``write_file`` will make."""
        parts = path.split("/")
        parents = ["/".join(parts[:depth]) for depth in range(1, len(parts))]
        return [parent for parent in parents if self.signature(parent) is None]

    def remove_directory(self, path: str) -> bool:
        """Remove an empty directory."""
        self._forget(path)
        return not self._run(_REMOVE_DIRECTORY, *_split(path)).exit_code

    def _look(self, path: str) -> str:
        """Learn what stands at a path and along the way; return the path with the links among its parents followed."""
        done = self._run(_LOOK, path)
        if done.exit_code:
            raise _error(done, path)
        root, here, rest, signed, link = done.output.split(b"\0", 4)
        below = os.fsdecode(here[len(root.rstrip(b"/")) + 1 :])
        left = "" if rest == b"." else os.fsdecode(rest)
        first = _join(below, left.partition("/")[0])
        real = _join(below, left)
        self._known[first] = found = _parse(signed)
        if link:
            self._links[first] = link
        for parent in _parents(first):
            self._known.setdefault(parent, _DIRECTORY)
        if found is None or not found.is_directory:
            for deeper in _parents(real):
                if deeper.startswith(f"{first}/"):
                    self._known[deeper] = None
            if real != first:
                self._known[real] = None
        return real

    def _forget(self, path: str) -> None:
        """Forget a path and everything above it, which a change can have made or removed."""
        for each in (path, *_parents(path)):
            self._known.pop(each, None)
            self._links.pop(each, None)

    def _run(self, program: str, *arguments: str, stdin: bytes = b"") -> Executed:
        done = self._sandbox.execute([_SHELL, "-c", program, "takeback", self.root, *arguments], stdin)
        if done.exit_code == _NO_ROOT:
            raise ToolRefused(self.root, "does not exist in the sandbox")
        return done


_DIRECTORY: Final = Signature(stat.S_IFDIR, 0o755, 0, 0, 0, 0, 0)
"""What stands for a directory of which no more has to be known."""


def _split(path: str) -> tuple[str, str]:
    validate(path)
    directory, _, name = path.rpartition("/")
    return directory or ".", name


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory and name else directory or name


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def _told(expected: Expected) -> str:
    """Write what has to stand at a path as the program's ``sign`` would."""
    if expected is ANY:
        return "any"
    if not isinstance(expected, Signature):
        return _NOTHING
    seconds = (expected.mtime_ns // 10**9, expected.ctime_ns // 10**9)
    return f"{expected.kind | expected.mode:x} {expected.size} {seconds[0]} {seconds[1]} {expected.ino} {expected.dev}"


def _parse(text: bytes) -> Signature | None:
    """Read what ``sign`` wrote."""
    fields = text.split()
    if len(fields) != _STAT_FIELDS:
        return None
    mode, (size, mtime, ctime, ino, dev) = int(fields[0], 16), map(int, fields[1:])
    return Signature(stat.S_IFMT(mode), stat.S_IMODE(mode), size, mtime * 10**9, ctime * 10**9, ino, dev)


def _error(done: Executed, path: str) -> Exception:
    """Say what a program that failed means."""
    if done.exit_code == _OUTSIDE:
        return PathUnsafe(path, "leads outside the workspace of the sandbox")
    if done.exit_code == _CHANGED:
        return ContentChanged(path, _parse(done.output))
    if _MISSING.search(done.errors):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    said = done.errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return OSError(errno.EIO, display(said or f"the sandbox refused it (exit code {done.exit_code})"), path)
