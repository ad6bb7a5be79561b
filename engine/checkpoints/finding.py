"""The tools ``list_files`` and ``search``: an agent's way to find its way round, bounded in size and time.

What they show is source, by the rules of a capture. A file that looks like a secret is named but never searched.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from pathspec import GitIgnoreSpec

from engine.backends.base import StopSignal
from engine.checkpoints.patterns import spec_of
from engine.checkpoints.source import Tracked, is_secret_name
from engine.checkpoints.tracked import read_exclude, read_tracked
from engine.checkpoints.walk import MOST_FILES, Listing, SourceFile, list_source
from engine.errors import GitUnavailable, ToolRefused
from engine.host.files import Tree
from engine.host.git import Git
from engine.host.paths import display
from engine.model import Wanted
from engine.tools.files import is_binary_content
from engine.tools.filetree import FileTree
from engine.tools.literal import literal_of
from engine.tools.matching import LINE_CHARACTERS, Found, OutOfTime, check, iter_matches
from engine.tools.ripgrep import Ripgrep
from engine.tools.sandbox import SandboxTree

LISTED: Final = 1000
"""How many files are listed."""

LINES: Final = 200
"""How many lines are shown that fit."""

LARGEST_BYTES: Final = 1024 * 1024
"""A larger file is not searched."""


class Finding:
    """Finds files and lines; git says what a user's repository tracks, where it can be asked."""

    def __init__(self, git: Git, search_path: str) -> None:
        self._git = git
        self._ripgrep = Ripgrep(search_path)

    def list_files(self, tree: FileTree, directory: str, named: str, pattern: str) -> str:
        """List source files below a directory, named as seen from ``directory``, as is each of them.

        Raises:
            ToolRefused: there is no such directory.
            PathUnsafe: it lies outside.
        """
        listing = self._listing(tree, directory, named, pattern)
        lines = [f"{_seen_from(directory, file.path)} ({file.size_bytes} bytes)" for file in listing.files[:LISTED]]
        if len(listing.files) > LISTED:
            count = f"{len(listing.files)}" if listing.complete else f"more than {MOST_FILES}"
            lines.append(f"[cut: {LISTED} of {count} files are shown; name a directory below, or a pattern]")
        return _text(lines or ["[no source files here]"], listing, [])

    def search(self, tree: FileTree, directory: str, named: str, wanted: Wanted, stop: StopSignal) -> str:
        """Find lines of source files; raises as ``list_files``, and ``ToolRefused`` for what is no pattern."""
        check(wanted)
        listing = self._listing(tree, directory, named, wanted.files)
        secret = [file for file in listing.files if is_secret_name(os.path.basename(file.path))]
        large = [file for file in listing.files if file.size_bytes > LARGEST_BYTES]
        left_out = {file.path for file in (*secret, *large)}
        paths = self._worth_reading(tree, [file.path for file in listing.files if file.path not in left_out], wanted)
        found: list[Found] = []
        remarks = [_left_out(secret, "that look like secrets"), _left_out(large, "larger than 1 MB")]
        try:
            for one in iter_matches(wanted, _texts(tree, paths), LINES + 1, stop):
                found.append(one)  # noqa: PERF402 - what was found before the time is over counts
        except OutOfTime as error:
            remarks.append(f"it took too long: nothing after {display(error.path)} was searched; name a narrower path")
        lines = [_line(directory, one) for one in found[:LINES]]
        if len(found) > LINES:
            lines.append(f"[cut: the first {LINES} lines are shown; name a narrower path or pattern]")
        return _text(lines or ["[no line fits]"], listing, [remark for remark in remarks if remark])

    def _listing(self, tree: FileTree, directory: str, named: str, pattern: str) -> Listing:
        path = tree.resolve(directory, named)
        found = tree.signature(path)
        if found is not None and found.is_file:
            return Listing([SourceFile(path, found.size)])
        if found is None or not found.is_directory:
            raise ToolRefused(display(named), "there is no such directory")
        if isinstance(tree, Tree):
            listing = list_source(tree, path, self._tracked(tree.root), read_exclude(tree.root))
        else:
            listing = list_source(tree, path, Tracked())
        if not pattern:
            return listing
        fits = _fitting(pattern).match_file
        prefix = len(path) + 1 if path else 0
        files = [file for file in listing.files if fits(file.path[prefix:])]
        return Listing(files, listing.complete, listing.unread)

    def _tracked(self, root: str) -> Tracked:
        try:
            return read_tracked(self._git, root)
        except GitUnavailable:
            return Tracked()

    def _worth_reading(self, tree: FileTree, paths: list[str], wanted: Wanted) -> Sequence[str]:
        """The files that can hold such a line, as far as that can be told without reading each."""
        literal = literal_of(wanted)
        if literal is None or not paths:
            return paths
        if isinstance(tree, SandboxTree):
            held = None if wanted.ignore_case else tree.holding(paths, literal)
        else:
            held = self._ripgrep.holding(tree.root, paths, literal, ignore_case=wanted.ignore_case)
        return paths if held is None else held


def _texts(tree: FileTree, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for path, content in tree.contents(paths, LARGEST_BYTES):
        if not is_binary_content(content):
            yield path, content


def _fitting(pattern: str) -> GitIgnoreSpec:
    """A pattern as ``.gitignore`` has them: of names, or of paths where a slash is in it."""
    try:
        return spec_of([f"\\{pattern}" if pattern[0] in "!#" else pattern])
    except (ValueError, re.error) as error:
        raise ToolRefused(f"the pattern {display(pattern)}", f"is none for file names ({error})") from None


def _line(directory: str, found: Found) -> str:
    cut = "…" if len(found.text) > LINE_CHARACTERS else ""
    return f"{_seen_from(directory, found.path)}:{found.number}:{found.text[:LINE_CHARACTERS]}{cut}"


def _seen_from(directory: str, path: str) -> str:
    return display(os.path.relpath(path, directory) if directory else path)


def _left_out(files: Sequence[SourceFile], what: str) -> str:
    if not files:
        return ""
    some = ", ".join(display(file.path) for file in files[:3])
    more = f" (+{len(files) - 3})" if len(files) > 3 else ""  # noqa: PLR2004 - three names, as in the lists
    return f"files {what} were not searched: {some}{more}"


def _text(lines: Sequence[str], listing: Listing, remarks: Sequence[str]) -> str:
    said = [*lines, *(f"[{remark}]" for remark in remarks)]
    if listing.unread:
        said.append(f"[{listing.unread} directories could not be read]")
    if not listing.complete:
        said.append(f"[there are more than {MOST_FILES} source files; the rest was not looked at]")
    return "".join(f"{line}\n" for line in said)
