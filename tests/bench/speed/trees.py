"""Trees to measure on: as many source files as asked for, in several shapes, the same for the same name."""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bench.speed.text import source

FILE_BYTES = 4000
FILES_PER_DIRECTORY = 12
CHURN_PARTS = 10
"""A tenth of the files of a plain tree ends in each digit's directory, so that one command can change a tenth."""

BIG_BYTES = 8_000_000
BIG_FILES = 20
DEEP_LEVELS = 60

_SEED = 20261130


@dataclass(frozen=True)
class Shape:
    """A kind of tree; ``edited`` is the file that one-file turns write."""

    name: str
    files: int
    make: Callable[[Path, int], str]

    def build(self, root: Path) -> str:
        """Make the tree and return the path of a file in its midst."""
        root.mkdir(parents=True)
        return self.make(root, self.files)


def make_plain(root: Path, files: int) -> str:
    """Twelve files a directory, three levels, as in a large project."""
    numbers = random.Random(_SEED)
    for start in range(0, files, FILES_PER_DIRECTORY):
        directory = root / f"part{start // 1200}" / f"module{start // 120 % 10}" / f"d{start // 12 % CHURN_PARTS}"
        directory.mkdir(parents=True, exist_ok=True)
        for number in range(start, min(start + FILES_PER_DIRECTORY, files)):
            (directory / f"file{number}.py").write_bytes(source(numbers, FILE_BYTES))
    return os.path.join("part0", "module0", "d0", "file3.py")


def make_deep(root: Path, files: int) -> str:
    """A chain of directories, each with its share of the files."""
    numbers = random.Random(_SEED)
    directory = root
    for level in range(DEEP_LEVELS):
        directory /= f"level{level}"
        directory.mkdir()
        for number in range(files // DEEP_LEVELS):
            (directory / f"file{number}.py").write_bytes(source(numbers, FILE_BYTES))
    return os.path.relpath(directory / "file0.py", root)


def make_wide(root: Path, files: int) -> str:
    """One directory that holds everything."""
    numbers = random.Random(_SEED)
    (root / "all").mkdir()
    for number in range(files):
        (root / "all" / f"file{number}.py").write_bytes(source(numbers, FILE_BYTES))
    return os.path.join("all", "file3.py")


def make_big(root: Path, files: int) -> str:
    """A plain tree beside large files that do not compress."""
    numbers = random.Random(_SEED)
    edited = make_plain(root, files)
    (root / "media").mkdir()
    for number in range(BIG_FILES):
        (root / "media" / f"{number}.bin").write_bytes(numbers.randbytes(BIG_BYTES))
    return edited


def plain(files: int) -> Shape:
    """Return the usual tree of so many files."""
    return Shape(f"{files:,} files", files, make_plain)


def odd_shapes(files: int) -> list[Shape]:
    """Return the trees that are not the usual one, each of so many files."""
    return [
        Shape(f"{files:,} files, {DEEP_LEVELS} levels deep", files, make_deep),
        Shape(f"{files:,} files in one directory", files, make_wide),
        Shape(f"{files:,} files and {BIG_FILES} of {BIG_BYTES // 1_000_000} MB", files, make_big),
    ]
