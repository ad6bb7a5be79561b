"""The names in the store as their files hold them, read and written without starting git.

A name is a file below ``refs/``, or a line of ``packed-refs``; the file counts where there are both. The files come
first: git writes ``packed-refs`` before it removes them, and takes a name out of it before its file.
"""

import os
import re
from collections.abc import Iterator

from engine.host import durable

_COMMIT = re.compile(rb"([0-9a-f]{40})(?:\s|\Z)")
_PACKED = re.compile(rb"^([0-9a-f]{40}) (\S.*)$", re.MULTILINE)
# What git takes for a part of a name (git-check-ref-format); it passes over all else.
_PART = re.compile(r"(?!\.)(?!.*(?:\.\.|@\{|\.lock$|\.$))[^\x00-\x20\x7f~^:?*\[\\/]+")
_MOST_BYTES = 1024


def read_names(git_dir: str, prefix: str) -> dict[str, str]:
    """Return the names below a prefix, or the one of that name, each with its commit, in git's order.

    Names that are torn are left out, as git leaves them out; whether a commit is there is not looked at.

    Raises:
        OSError: a name cannot be read.
    """
    found = dict(_read_files(git_dir, prefix))
    for name, commit in _read_packed(git_dir, prefix):
        found.setdefault(name, commit)
    return {name: commit for name, commit in sorted(found.items()) if commit is not None}


def write_name(git_dir: str, name: str, commit: str) -> None:
    """Point a name at a commit, durably; whoever does has the workspace that it belongs to for himself.

    Raises:
        OSError: it is as it was, or not durable.
    """
    path = os.path.join(git_dir, name)
    durable.make_directories(os.path.dirname(path))
    # Git's own protocol: who has made the lock may write, and the lock becomes the file.
    durable.write_bytes(path, f"{commit}\n".encode("ascii"), temporary=f"{path}.lock")


def _read_files(git_dir: str, prefix: str) -> Iterator[tuple[str, str | None]]:
    """Yield the names that have files; what is torn hides a packed one of its name, as it does to git."""
    try:
        yield prefix, _read_file(os.path.join(git_dir, prefix))
    except (FileNotFoundError, NotADirectoryError):
        return
    except IsADirectoryError:
        yield from _read_directory(git_dir, prefix)


def _read_directory(git_dir: str, directory: str) -> Iterator[tuple[str, str | None]]:
    try:
        with os.scandir(os.path.join(git_dir, directory)) as entries:
            parts = [(entry.name, entry.is_dir()) for entry in entries if _PART.fullmatch(entry.name)]
    except FileNotFoundError:
        return  # emptied meanwhile
    for part, is_directory in parts:
        name = f"{directory}/{part}"
        yield from _read_directory(git_dir, name) if is_directory else _read_files(git_dir, name)


def _read_file(path: str) -> str | None:
    with open(path, "rb") as stream:
        match = _COMMIT.match(stream.read(_MOST_BYTES))
    return match[1].decode("ascii") if match else None


def _read_packed(git_dir: str, prefix: str) -> Iterator[tuple[str, str]]:
    try:
        with open(os.path.join(git_dir, "packed-refs"), "rb") as stream:
            content = stream.read()
    except FileNotFoundError:
        return
    wanted = os.fsencode(prefix)
    if wanted not in content:
        return
    for commit, raw in _PACKED.findall(content):
        if raw == wanted or raw.startswith(wanted + b"/"):
            yield os.fsdecode(raw), commit.decode("ascii")
