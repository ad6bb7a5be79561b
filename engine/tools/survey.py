"""Looking round in a sandbox: many files at once, because each call of a program inside takes a moment.

The programs are POSIX sh with ``find``, ``stat``, ``grep`` and ``tar`` as busybox has them. No symlink is followed.
Names with a line break in them are passed over.
"""

import io
import os
import posixpath
import tarfile
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from engine.backends.base import Executed
from engine.host.signatures import Signature
from engine.tools.ripgrep import batches

MOST_ENTRIES: Final = 60_000
"""How many names of a sandbox are learned at once."""

ARGUMENT_BYTES: Final = 48 * 1024
PACKED_BYTES: Final = 8 * 1024 * 1024
"""How much of names, and of contents, one call is asked for."""

_BEGIN: Final = 'LC_ALL=C; export LC_ALL\ncd -P -- "$1" || exit 95\nshift\n'

# $1 the directory, $2 how many, then the arguments of find that say what is left out.
_FIND: Final = (
    _BEGIN
    + r"""
directory=$1 most=$2
shift 2
find "$directory" "$@" -exec stat -c '%f %s %Y %Z %i %d %n' {} + 2>/dev/null | head -n "$most"
"""
)
_PACK: Final = _BEGIN + 'exec tar -c -f - "$@" 2>/dev/null\n'
_HOLD: Final = _BEGIN + 'text=$1\nshift\nexec grep -l -F -e "$text" -- "$@"\n'

_NONE = 1

Run = Callable[..., Executed]
"""Runs one of the programs with arguments, after the first, which is the root."""

Entries = dict[str, list[tuple[str, Signature]]]
"""What directories hold, by their paths."""


def look(run: Run, below: str, without: Collection[str], parse: Callable[[bytes], Signature | None]) -> Entries:
    """Learn names and signatures of everything below a directory; of directories left out neither."""
    names = [word for name in sorted(without) for word in ("-o", "-name", _plainly(name))]
    skip = ["(", "-type", "d", "(", *names[1:], ")", "-o", "-name", "*\n*", ")", "-prune", "-o"]
    done = run(_FIND, f"./{below}" if below else ".", str(MOST_ENTRIES), *skip)
    found: Entries = {below: []}
    for line in done.output.split(b"\n"):
        *fields, name = line.split(b" ", 6)
        path = posixpath.normpath(os.fsdecode(name))
        signature = parse(b" ".join(fields))
        if signature is None or path in {".", below}:
            continue
        directory, _, last = path.rpartition("/")
        found.setdefault(directory, []).append((last, signature))
        if signature.is_directory:
            found.setdefault(path, [])
    return {directory: sorted(entries, key=lambda entry: entry[0]) for directory, entries in found.items()}


def read(run: Run, files: Sequence[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    """Yield what files hold, each given with its size; those that cannot be read are left out."""
    for some in _shares(files):
        done = run(_PACK, *(f"./{path}" for path in some))
        yield from _unpacked(done.output)


def hold(run: Run, paths: Sequence[str], text: str) -> list[str] | None:
    """Return those of some files that hold a text; ``None`` where that cannot be told."""
    held = set()
    for some in batches(paths, ARGUMENT_BYTES):
        done = run(_HOLD, text, *(f"./{path}" for path in some))
        if done.exit_code > _NONE:
            return None
        held |= {posixpath.normpath(os.fsdecode(line)) for line in done.output.split(b"\n") if line}
    return [path for path in paths if path in held]


def _plainly(name: str) -> str:
    """A name as a pattern of itself."""
    return name.replace("\\", "\\\\").replace("[", "\\[").replace("*", "\\*").replace("?", "\\?")


def _shares(files: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Share files out over calls."""
    some: list[str] = []
    named = held = 0
    for path, size in files:
        if some and (named + len(path) * 4 > ARGUMENT_BYTES or held + size > PACKED_BYTES):
            yield some
            some, named, held = [], 0, 0
        some.append(path)
        named, held = named + len(path) * 4, held + size
    if some:
        yield some


def _unpacked(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the regular files of an archive, as far as it goes."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:", encoding="utf-8", errors="surrogateescape") as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isreg() else None
                if file is not None:
                    yield posixpath.normpath(member.name), file.read()
    except tarfile.TarError:  # cut short, or nothing at all
        return
