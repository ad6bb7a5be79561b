"""Which paths a partial restore means: git pathspecs, checked before anything changes.

A name that exists as it was typed is that file, whatever its characters would mean in a pattern. A nested repository
that the checkpoint recorded must not be reached: by its own name, a file below it, a directory above it, or a pattern.
"""

import fnmatch
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.errors import BadSelection, GitFailed, NestedRepositoryRefused
from engine.host.durable import TEMPORARY_PREFIX
from engine.host.files import Tree
from engine.host.git import Git
from engine.host.paths import PathUnsafe, is_repository_part, validate
from engine.store.objects import EMPTY_TREE, diff_trees

_LONG_MAGIC = re.compile(r":\(([^)]*)\)(.*)", re.DOTALL)
_SHORT_MAGIC = re.compile(r":([/!^]*):?(.*)", re.DOTALL)
_WILDCARD = re.compile(r"[*?\[]")
_KNOWN_MAGIC = {"top", "literal", "icase", "glob", "exclude"}


@dataclass(frozen=True, slots=True)
class Spec:
    """One pathspec: ``body`` is the path or pattern without magic, ``text`` what git is told."""

    typed: str
    text: str
    body: str
    literal: bool
    excludes: bool = False
    ignores_case: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """Checked pathspecs of one restore."""

    specs: tuple[Spec, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """What git is told."""
        return tuple(spec.text for spec in self.specs)

    @property
    def named(self) -> frozenset[str]:
        """The paths that were named exactly."""
        return frozenset(spec.body for spec in self.specs if spec.literal and not spec.excludes)

    def names_directory_of(self, path: str) -> bool:
        """Whether a path was named literally or lies below a directory that was."""
        named = (spec.body for spec in self.specs if spec.literal and not spec.excludes)
        return any(not body or path == body or path.startswith(f"{body}/") for body in named)


def parse_selection(typed: Sequence[str], tree: Tree, git: Git, target: str) -> Selection:
    """Check what a person typed.

    Raises:
        BadSelection: a path that is absolute, has ``..`` or ``.git``, or unknown magic.
    """
    return Selection(tuple(_parse_spec(item, tree, git, target) for item in typed))


def refuse_nested(selection: Selection, repositories: Iterable[str], matched: frozenset[str]) -> None:
    """Refuse a selection that reaches a nested repository recorded in the checkpoint.

    Args:
        selection: what was selected.
        repositories: the nested repositories' paths in the checkpoint.
        matched: the paths of the checkpoint that the selection matches, nested repositories included.

    Raises:
        NestedRepositoryRefused: naming those it reaches.
    """
    excluded = [spec.body for spec in selection.specs if spec.excludes and spec.literal]
    reached = [
        path
        for path in sorted(repositories)
        if path in matched
        or (
            not any(path == body or path.startswith(f"{body}/") for body in excluded)
            and any(_reaches(spec, path) for spec in selection.specs if not spec.excludes)
        )
    ]
    if reached:
        raise NestedRepositoryRefused(reached)


def matched_in_checkpoint(git: Git, target: str, selection: Selection) -> frozenset[str]:
    """Return the paths of a checkpoint that a selection matches.

    Raises:
        BadSelection: git does not understand it.
    """
    try:
        changes = diff_trees(git, EMPTY_TREE, target, selection.texts, with_trees=False)
    except GitFailed as error:
        typed = " ".join(spec.typed for spec in selection.specs)
        raise BadSelection(typed, f"git cannot use it ({error.detail})") from error
    return frozenset(change.path for change in changes)


def matched_names(git: Git, names: Iterable[str], selection: Selection) -> frozenset[str]:
    """Return those names that a selection matches, without adding anything to the store."""
    # Beside the store's own temporary files: nothing is written elsewhere, and a prune sweeps what a kill leaves.
    with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, dir=git.git_dir) as scratch:
        env = {"GIT_INDEX_FILE": os.path.join(scratch, "index")}
        lines = b"".join(
            b"100644 %s\t%s\0" % (b"1" * 40, name.encode("utf-8", "surrogateescape")) for name in sorted(names)
        )
        git.run(["update-index", "-z", "--index-info"], stdin=lines, env=env)
        out = git.run(["ls-files", "-z", "--cached", "--", *selection.texts], env=env, literal_pathspecs=False)
    return frozenset(os.fsdecode(name) for name in out.split(b"\0") if name)


def _parse_spec(typed: str, tree: Tree, git: Git, target: str) -> Spec:
    if "\0" in typed or not typed:
        raise BadSelection(typed, "an empty name or one with a NUL character is no path")
    plain = _normalize(typed)
    if plain is not None and _exists(plain, tree, git, target):
        return Spec(typed, f":(top,literal){plain}", plain, literal=True)
    magic, body = _split_magic(typed)
    body = _checked_body(typed, body)
    # git strips trailing slashes from no pattern, so "dir/" and "dir" would differ.
    literal = "literal" in magic or not _WILDCARD.search(body)
    words = ",".join(
        sorted((magic - {"literal"}) | {"top"} | ({"literal"} if literal and "icase" not in magic else set()))
    )
    return Spec(typed, f":({words}){body}", body, literal, "exclude" in magic, "icase" in magic)


def _split_magic(typed: str) -> tuple[set[str], str]:
    long = _LONG_MAGIC.fullmatch(typed)
    if long:
        words = {word.strip() for word in long[1].split(",") if word.strip()}
        unknown = words - _KNOWN_MAGIC
        if unknown:
            known = ", ".join(sorted(_KNOWN_MAGIC))
            raise BadSelection(typed, f"{', '.join(sorted(unknown))} is not understood here; usable are {known}")
        return words, long[2]
    short = _SHORT_MAGIC.fullmatch(typed) if typed.startswith(":") else None
    if short:
        return ({"exclude"} if set(short[1]) & set("!^") else set()), short[2]
    return set(), typed


def _checked_body(typed: str, body: str) -> str:
    if body.startswith("/"):
        raise BadSelection(typed, "is absolute; name files relative to the workspace")
    parts = [part for part in body.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BadSelection(typed, "leads out of the directory with '..'; name files relative to the workspace")
    if any(is_repository_part(part) for part in parts):
        raise BadSelection(typed, "belongs to git, which is never touched")
    return "/".join(parts)


def _normalize(typed: str) -> str | None:
    """Return a plain path as the tree spells it, ``None`` for what cannot be one."""
    if typed.startswith("/"):
        return None
    path = "/".join(part for part in typed.split("/") if part not in ("", "."))
    try:
        validate(path)
    except PathUnsafe:
        return None
    return path


def _exists(path: str, tree: Tree, git: Git, target: str) -> bool:
    if tree.signature(path) is not None:
        return True
    return bool(diff_trees(git, EMPTY_TREE, target, [f":(top,literal){path}"], with_trees=False))


def _reaches(spec: Spec, repository: str) -> bool:
    """Whether a spec means the repository, something above it, or something below it."""
    body, path = (spec.body.casefold(), repository.casefold()) if spec.ignores_case else (spec.body, repository)
    if spec.literal:
        return not body or body == path or body.startswith(f"{path}/") or path.startswith(f"{body}/")
    # A pattern is judged by its leading parts; one that names nothing, such as "**" or "*", means what it matches.
    parts = body.split("/")
    depth = path.count("/") + 1
    head = "/".join(parts[:depth])
    names_something = re.sub(r"[*?/]", "", head) != ""
    return len(parts) > depth and names_something and fnmatch.fnmatchcase(path, head)
