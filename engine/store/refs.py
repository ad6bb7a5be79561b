"""The names in the store: which checkpoints, bases and baselines a workspace has."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.host.git import Git
from engine.store.commits import Commits
from engine.store.layout import REF_ROOT
from engine.store.names import read_names, write_name


@dataclass(frozen=True, slots=True)
class RefRecord:
    """A ref with what its commit says; see `Commit`."""

    name: str
    commit: str
    tree: str
    message: str
    parents: tuple[str, ...] = ()


def checkpoint_ref(workspace_hash: str, sequence: int) -> str:
    """Name a checkpoint."""
    return f"{REF_ROOT}/{workspace_hash}/checkpoints/{sequence:08d}"


def after_ref(workspace_hash: str, sequence: int) -> str:
    """Name the state after the last tool of the turn that a checkpoint covers."""
    return f"{REF_ROOT}/{workspace_hash}/after/{sequence:08d}"


def base_ref(workspace_hash: str) -> str:
    """Name the newest capture, which the next one builds on."""
    return f"{REF_ROOT}/{workspace_hash}/base"


def session_ref(workspace_hash: str, session_hash: str) -> str:
    """Name the baseline of a session."""
    return f"{REF_ROOT}/{workspace_hash}/sessions/{session_hash}"


RUNNING = "running"
"""How the names of states before tools that are under way begin."""


def running_ref(workspace_hash: str, number: int) -> str:
    """Name a state before a tool that is under way; the ref stands only while a gc runs."""
    return f"{REF_ROOT}/{workspace_hash}/{RUNNING}-{number}"


def merged_ref(workspace_hash: str) -> str:
    """Name the contents that a restore merges; the ref stands only while that restore is under way."""
    return f"{REF_ROOT}/{workspace_hash}/merged"


def list_refs(
    git: Git, prefix: str, broken: list[str] | None = None, commits: Commits | None = None
) -> list[RefRecord]:
    """Return the refs below a prefix, or the one of that name, ordered by name.

    One whose commit the store cannot give is left as it is and left out; its name is added to ``broken``.

    Args:
        git: the store.
        prefix: where to look.
        broken: takes the names that were left out.
        commits: what is known of the store's commits; without it each is read anew.

    Raises:
        GitFailed: git ran out of time.
        OSError: a name cannot be read.
    """
    names = list_names(git, prefix)
    found = (commits or Commits(git)).find(names.values())
    if broken is not None:
        broken += [name for name, oid in names.items() if oid not in found]
    held = ((name, oid, found[oid]) for name, oid in names.items() if oid in found)
    return [RefRecord(name, oid, commit.tree, commit.message, commit.parents) for name, oid, commit in held]


def list_names(git: Git, prefix: str) -> dict[str, str]:
    """Return every name below a prefix, or the one of that name, with its commit; no object is opened."""
    return read_names(git.git_dir, prefix)


def find_ref(git: Git, name: str, commits: Commits | None = None) -> RefRecord | None:
    """Return one ref, ``None`` if it is not there or leads to nothing; see `list_refs`."""
    return next((record for record in list_refs(git, name, commits=commits) if record.name == name), None)


def update_refs(git: Git, *, set_to: Sequence[tuple[str, str]] = (), delete: Iterable[str] = ()) -> None:
    """Change several refs in one transaction: all or none.

    Raises:
        GitFailed: none was changed.
        OSError: as `write_name`, where only one is set.
    """
    set_to, delete = list(set_to), list(delete)
    if len(set_to) == 1 and not delete:
        write_name(git.git_dir, *set_to[0])
        return
    lines = [f"update {name}\0{commit}\0\0" for name, commit in set_to]
    lines += [f"delete {name}\0\0" for name in delete]
    if lines:
        git.run(["update-ref", "-z", "--stdin"], stdin="".join(lines).encode("ascii"))
