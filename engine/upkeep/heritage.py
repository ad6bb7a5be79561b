"""The history of a foreign workspace: which commits it is made of, in order, and whether each can be trusted.

Every object is read whole and hashed. A tree that no honest capture makes (``.git`` or ``..`` in it, names twice or out
of order, modes git does not write, a bomb) makes its checkpoint one that is left out; the others are not affected.
"""

import heapq
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.host.paths import display, is_repository_part
from engine.upkeep.foreign import LeftOut
from engine.upkeep.proof import Prover, parse_tree

_TREE = b"40000"
_GITLINK = b"160000"
_MODES = frozenset({_TREE, _GITLINK, b"100644", b"100755", b"120000"})
_MOST_ENTRIES = 1_000_000
_DEEPEST = 200
_MOST_COMMITS = 100_000
_COMMITTER = re.compile(rb"^committer .*?(-?\d{1,15}) [+-]\d{4}$", re.MULTILINE)
_PARENT = re.compile(rb"^parent ([0-9a-f]{40})$", re.MULTILINE)
_LAST_DAY_S = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp())


@dataclass(frozen=True, slots=True)
class Ancestor:
    """One checkpoint of a foreign history."""

    commit: str
    tree: str
    subject: str
    at_s: int
    parents: tuple[str, ...] = ()


def read_heritage(prover: Prover, tips: Mapping[str, str]) -> tuple[list[Ancestor], list[LeftOut]]:
    """Return the commits that these names and their parents stand for, oldest first, and what cannot be taken over.

    A parent comes before its children; beyond that the dates decide.
    """
    found: dict[str, Ancestor] = {}
    left_out: dict[str, LeftOut] = {}
    wanted = sorted(set(tips.values()))
    while wanted:
        commit = wanted.pop()
        if commit in found or commit in left_out:
            continue
        if len(found) >= _MOST_COMMITS:
            left_out[""] = LeftOut("the rest of the history", f"it has more than {_MOST_COMMITS} checkpoints")
            break
        ancestor = _read_commit(prover, commit)
        if isinstance(ancestor, str):
            left_out[commit] = LeftOut(f"checkpoint {commit[:8]}", ancestor)
        else:
            found[commit] = ancestor
            wanted += ancestor.parents
    judge = _TreeJudge(prover)
    sound = []
    for ancestor in _in_order(found):
        problem = judge.problem_of(ancestor.tree)
        if problem:
            left_out[ancestor.commit] = LeftOut(f"checkpoint {ancestor.commit[:8]}", problem)
        else:
            sound.append(ancestor)
    return sound, list(left_out.values())


def _read_commit(prover: Prover, commit: str) -> Ancestor | str:
    content, why = prover.read(commit, b"commit")
    if content is None:
        return why
    head, _blank, message = content.partition(b"\n\n")
    committer = _COMMITTER.search(head)
    if not head.startswith(b"tree ") or committer is None or not 0 <= int(committer[1]) < _LAST_DAY_S:
        return "its tree or its date cannot be read"
    subject = message.strip().split(b"\n", 1)[0].decode("utf-8", "replace").strip()
    tree = head[len(b"tree ") :].split(b"\n", 1)[0].decode("ascii", "replace")
    parents = tuple(parent.decode("ascii") for parent in _PARENT.findall(head))
    return Ancestor(commit, tree, subject, int(committer[1]), parents)


def _in_order(found: Mapping[str, Ancestor]) -> list[Ancestor]:
    """Return parents before children, the earlier date first where neither is the other's."""
    missing = {commit: {parent for parent in item.parents if parent in found} for commit, item in found.items()}
    children: dict[str, list[str]] = {}
    for commit, parents in missing.items():
        for parent in parents:
            children.setdefault(parent, []).append(commit)
    ready = [(found[commit].at_s, commit) for commit, parents in missing.items() if not parents]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _at_s, commit = heapq.heappop(ready)
        ordered.append(found[commit])
        for child in children.get(commit, ()):
            missing[child].discard(commit)
            if not missing[child]:
                heapq.heappush(ready, (found[child].at_s, child))
    return ordered


@dataclass(frozen=True, slots=True)
class _Judgement:
    """What there is to say against a tree, how many entries are below it, and how deep."""

    problem: str | None = None
    entries: int = 0
    height: int = 0


class _TreeJudge:
    """Proves trees and judges what is in them; each tree once."""

    def __init__(self, prover: Prover) -> None:
        self._prover = prover
        self._known: dict[str, _Judgement] = {}

    def problem_of(self, tree: str) -> str | None:
        """Return why a tree is not taken over, ``None`` if it is."""
        judged = self._judge(tree, 0)
        if judged.problem is None and judged.entries > _MOST_ENTRIES:
            return f"it has more than {_MOST_ENTRIES} files"
        return judged.problem

    def _judge(self, tree: str, depth: int) -> _Judgement:
        judged = self._known.get(tree)
        if judged is None and depth <= _DEEPEST:
            judged = self._known[tree] = self._judge_entries(tree, depth)
        if judged is None or depth + judged.height > _DEEPEST:
            return _Judgement(f"its directories are more than {_DEEPEST} deep")
        return judged

    def _judge_entries(self, tree: str, depth: int) -> _Judgement:
        content, why = self._prover.read(tree, b"tree")
        if content is None:
            return _Judgement(f"object {tree[:8]}: {why}")
        try:
            entries = list(parse_tree(content))
        except ValueError:
            return _Judgement(f"object {tree[:8]}: it is no tree")
        if problem := _problem_of_names(entries):
            return _Judgement(problem)
        total = height = 0
        for mode, name, oid in entries:
            below = self._judge_entry(mode, oid, depth)
            if below.problem:
                return _Judgement(f"{display(name.decode('utf-8', 'surrogateescape'))}: {below.problem}")
            total += below.entries + 1
            height = max(height, below.height + 1)
        return _Judgement(None, total, height)

    def _judge_entry(self, mode: bytes, oid: bytes, depth: int) -> _Judgement:
        if mode == _TREE:
            return self._judge(oid.hex(), depth + 1)
        return _Judgement() if mode == _GITLINK else _Judgement(self._prover.blob(oid))


def _problem_of_names(entries: list[tuple[bytes, bytes, bytes]]) -> str | None:
    for mode, raw, _oid in entries:
        name = raw.decode("utf-8", "surrogateescape")
        if not name or "/" in name or name in {".", ".."} or is_repository_part(name):
            return f"it holds an entry {display(name)!r}, which no checkpoint may"
        if mode not in _MODES:
            return f"{display(name)} has the mode {mode.decode('ascii', 'replace')!r}"
    keys = [raw + b"/" if mode == _TREE else raw for mode, raw, _oid in entries]
    if keys != sorted(keys) or len({raw for _mode, raw, _oid in entries}) != len(entries):
        return "its entries are not in git's order or are there twice"
    return None
