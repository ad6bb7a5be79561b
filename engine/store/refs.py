"""The names in the store: which checkpoints, bases and baselines a workspace has."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.errors import GitFailed
from engine.host.git import Git
from engine.store.layout import REF_ROOT


@dataclass(frozen=True, slots=True)
class RefRecord:
    """A ref with what its commit says."""

    name: str
    commit: str
    tree: str
    message: str


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


def list_refs(git: Git, prefix: str, broken: list[str] | None = None) -> list[RefRecord]:
    """Return the refs below a prefix, or the one of that name, ordered by name.

    One whose commit the store no longer holds is left as it is and left out; its name is added to ``broken``.
    """
    try:
        return _read_refs(git, [prefix])
    except GitFailed as error:
        if error.timed_out:
            raise
        lost = _find_broken(git, prefix)
        if not lost:
            raise
        if broken is not None:
            broken += lost
        sound = [name for name in list_names(git, prefix) if name not in lost]
        return _read_refs(git, sound) if sound else []


def _read_refs(git: Git, patterns: Sequence[str]) -> list[RefRecord]:
    form = "%(refname)%00%(objectname)%00%(tree)%00%(contents)%00%01"
    out = git.run(["for-each-ref", f"--format={form}", *patterns])
    records = []
    for block in out.split(b"\0\x01"):
        if block.strip():
            name, commit, tree, message = block.lstrip(b"\n").decode("utf-8", "replace").split("\0", 3)
            records.append(RefRecord(name, commit, tree, message))
    return records


def list_names(git: Git, prefix: str) -> dict[str, str]:
    """Return every name below a prefix with its commit; no object is opened."""
    out = git.run(["for-each-ref", "--format=%(refname) %(objectname)", prefix]).decode("utf-8", "surrogateescape")
    return dict(line.split(" ", 1) for line in out.splitlines())


def _find_broken(git: Git, prefix: str) -> list[str]:
    names = list_names(git, prefix)
    commits = "".join(f"{commit}\n" for commit in names.values()).encode("ascii")
    kinds = git.run(["cat-file", "--batch-check=%(objecttype)"], stdin=commits).splitlines()
    return [name for name, kind in zip(names, kinds, strict=True) if kind != b"commit"]


def find_ref(git: Git, name: str) -> RefRecord | None:
    """Return one ref, ``None`` if it is not there or leads to nothing."""
    return next((record for record in list_refs(git, name) if record.name == name), None)


def update_refs(git: Git, *, set_to: Sequence[tuple[str, str]] = (), delete: Iterable[str] = ()) -> None:
    """Change several refs in one transaction: all or none.

    Raises:
        GitFailed: none was changed.
    """
    lines = [f"update {name}\0{commit}\0\0" for name, commit in set_to]
    lines += [f"delete {name}\0\0" for name in delete]
    if lines:
        git.run(["update-ref", "-z", "--stdin"], stdin="".join(lines).encode("ascii"))
