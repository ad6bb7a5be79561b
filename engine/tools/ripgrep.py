"""ripgrep, where it is installed: says which files hold a text, so that only these have to be read.

It is told every file by name and reads no configuration and no ignore file. What it says is never shown: the files are
read again by the tool, which judges each line itself.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Final

from engine.backends.client import call_client
from engine.backends.conversation import NotStarted
from engine.host.paths import within

LIMIT_S: Final = 10.0
"""How long it may take; after that every file is read instead."""

ARGUMENT_BYTES: Final = 96 * 1024
"""How much of names one call is given: systems take at least 128 KB of arguments."""

_OPTIONS = (
    *("--no-config", "--no-ignore", "--hidden", "--no-messages", "--color=never", "--text", "--encoding=none"),
    *("--files-with-matches", "--null", "--fixed-strings"),
)
_SOME, _NONE = 0, 1


class Ripgrep:
    """The program, as it is found in a search path; nothing is run before it is needed."""

    def __init__(self, search_path: str) -> None:
        self._search_path = search_path

    def holding(self, root: str, paths: Sequence[str], text: str, *, ignore_case: bool) -> list[str] | None:
        """Return those of some files below a root that hold a text; ``None`` where that cannot be told."""
        program = shutil.which("rg", path=self._search_path)
        if program is None or within(os.path.realpath(program), root):
            return None
        until = monotonic() + LIMIT_S
        options = [*_OPTIONS, *(("--ignore-case",) if ignore_case else ("--case-sensitive",)), "--regexp", text, "--"]
        held: list[str] = []
        for some in batches(paths, ARGUMENT_BYTES):
            try:
                words = [program, *options, *(os.path.join(root, path) for path in some)]
                done = call_client(words, {}, timeout_s=max(until - monotonic(), 0.01))
            except NotStarted:
                return None
            if done.exit_code not in {_SOME, _NONE}:
                return None
            held += [os.fsdecode(path)[len(root.rstrip("/")) + 1 :] for path in done.output.split(b"\0") if path]
        # In the order asked: it works on several files at once.
        found = set(held)
        return [path for path in paths if path in found]


def batches(paths: Sequence[str], most_bytes: int) -> Iterator[list[str]]:
    """Share names out over calls, so many bytes of them in each."""
    some: list[str] = []
    size = 0
    for path in paths:
        if some and size + len(path) * 4 > most_bytes:
            yield some
            some, size = [], 0
        some.append(path)
        size += len(path) * 4
    if some:
        yield some
