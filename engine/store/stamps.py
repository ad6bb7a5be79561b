"""Stamps: what changes whenever a file does, so that what was read from it can be believed as long as it stays."""

import os

Stamp = tuple[int, ...]


def file_stamp(path: str) -> Stamp | None:
    """Return what changes whenever a file is written, ``None`` for a missing one."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def packs_stamp(git_dir: str) -> frozenset[tuple[str, Stamp]]:
    """Return what changes whenever a pack comes, goes or is written to."""
    found = set()
    try:
        with os.scandir(os.path.join(git_dir, "objects", "pack")) as entries:
            for entry in entries:
                stamp = file_stamp(entry.path) if entry.name.endswith((".pack", ".idx")) else None
                if stamp is not None:
                    found.add((entry.name, stamp))
    except (FileNotFoundError, NotADirectoryError):
        pass  # a store without packs
    return frozenset(found)
