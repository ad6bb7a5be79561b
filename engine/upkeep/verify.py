"""Proving the store: every checkpoint's objects read and hashed, every record read, each newest checkpoint rehearsed.

Reads beside others, never during a gc, and changes nothing but a scratch directory that it removes.
"""

import errno
from collections.abc import Iterator, Sequence

from engine.checkpoints.history import list_held
from engine.errors import EngineError, GitUnavailable
from engine.host.paths import display
from engine.model import Workspace
from engine.store.layout import REF_ROOT
from engine.store.opened import Store
from engine.upkeep.drops import commits_of
from engine.upkeep.facts import WorkspaceFacts, read_workspaces
from engine.upkeep.figures import counted
from engine.upkeep.findings import Finding, Severity, VerifyReport
from engine.upkeep.progress import Cancelled, Progress, Step, never, unheard
from engine.upkeep.proof import Damage, Prover
from engine.upkeep.records import check_names, check_records
from engine.upkeep.rehearsal import rehearse

__all__ = ["Finding", "Severity", "VerifyReport", "verify"]

_SHOWN = 3
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FROM_BACKUP = (
    "The other checkpoints are not affected. Bring the store's objects back from a backup, or let it go: "
    "gateway checkpoints clear"
)


def verify(store: Store, *, progress: Progress = unheard, cancelled: Cancelled = never) -> VerifyReport:
    """Prove the store and report what is wrong with it; where there is no store, nothing is.

    Raises:
        StoreBusy: a prune is under way past the bounded wait.
        GitUnavailable: git cannot be used.
        StorageFailed: the store cannot be looked at, which says nothing of it.
    """
    if not store.exists():
        return VerifyReport()
    with store.beside("a verification"):
        return _Verification(store, progress, cancelled).run()


class _Cancelled(Exception):
    """The verification was cancelled between two steps."""


class _Verification:
    """One pass over one store."""

    def __init__(self, store: Store, progress: Progress, cancelled: Cancelled) -> None:
        self._store = store
        self._progress = progress
        self._cancelled = cancelled
        self._findings: list[Finding] = []
        self._proved = 0
        self._rehearsed = 0
        self._damaged: set[str] = set()

    def run(self) -> VerifyReport:
        workspaces: Sequence[WorkspaceFacts] = ()
        was_cancelled = False
        with Prover(self._store.git) as prover:
            try:
                self._findings += check_names(self._store.layout)
                workspaces = self._read()
                self._prove(workspaces, prover)
                self._rehearse(workspaces)
            except _Cancelled:
                was_cancelled = True
            except GitUnavailable:
                raise
            except EngineError as error:
                self._findings.append(Finding(Severity.ERROR, f"the names cannot be read: {error}", _FROM_BACKUP))
        return VerifyReport(
            tuple(self._findings),
            len(workspaces),
            self._proved,
            prover.objects,
            prover.size_bytes,
            self._rehearsed,
            was_cancelled,
        )

    def _read(self) -> list[WorkspaceFacts]:
        return read_workspaces(self._store.layout, self._store.git)

    def _prove(self, workspaces: Sequence[WorkspaceFacts], prover: Prover) -> None:
        total = sum(len(commits_of(facts)) for facts in workspaces)
        done = 0
        for facts in workspaces:
            self._findings += check_records(self._store.layout, facts)
            whole = True
            for name, commit in commits_of(facts).items():
                self._go_on()
                tree, damage = prover.commit(commit)
                if damage:
                    self._damaged.add(commit)
                    step = _FROM_BACKUP if tree is not None else _or_let_go(self._store.layout.store, name)
                    self._findings.append(_damage_finding(facts, name, commit, damage, step))
                whole = whole and tree is not None
                done += 1
                self._progress(Step("proving checkpoints", done, total, prover.size_bytes))
            self._proved += len(facts.checkpoints)
            if whole:
                self._findings += self._check_list(facts)

    def _check_list(self, facts: WorkspaceFacts) -> Iterator[Finding]:
        """Check that the list people see can be made and says what the names say."""
        try:
            held = list_held(self._store, Workspace("", "", facts.hash))
        except (EngineError, ValueError, KeyError, TypeError) as error:
            what = f"the checkpoints of {facts.workdir or facts.hash} cannot be listed: {error}"
            yield Finding(Severity.ERROR, what, "See the other findings on this workspace.", facts.hash)
            return
        listed = {item.checkpoint.id for item in held}
        missing = [item.commit for item in facts.checkpoints if item.commit not in listed]
        if missing:
            # Looked at again: a chat that goes on drops its oldest checkpoints, which is no damage.
            kept = {item.commit for now in self._read() if now.hash == facts.hash for item in now.checkpoints}
            missing = [commit for commit in missing if commit in kept]
        if missing and facts.project is not None:
            what = f"kept but not listed: {counted(len(missing), 'checkpoint')} of {facts.workdir}"
            yield Finding(Severity.ERROR, what, _FROM_BACKUP, facts.hash, missing[0])

    def _rehearse(self, workspaces: Sequence[WorkspaceFacts]) -> None:
        newest = [(facts, facts.checkpoints[-1].commit) for facts in workspaces if facts.checkpoints]
        for done, (facts, commit) in enumerate(newest, start=1):
            self._go_on()
            if commit not in self._damaged:
                self._findings += self._rehearse_one(facts, commit)
            self._progress(Step("rehearsing restores", done, len(newest)))

    def _rehearse_one(self, facts: WorkspaceFacts, commit: str) -> Iterator[Finding]:
        where = facts.workdir or facts.hash
        try:
            result = rehearse(self._store, commit)
        except OSError as error:
            what = f"the restore of {where} could not be rehearsed: {error.strerror or error}"
            need = "Make room in" if error.errno in _FULL else "See that this user can write"
            step = f"{need} {self._store.layout.base}, then verify again."
            yield Finding(Severity.WARNING, what, step, facts.hash, commit)
        except (EngineError, ValueError) as error:
            what = f"checkpoint {commit[:8]} of {where} cannot be restored: {error}"
            yield Finding(Severity.ERROR, what, _FROM_BACKUP, facts.hash, commit)
        else:
            self._rehearsed += 1
            if result.problems:
                what = f"checkpoint {commit[:8]} of {where} came out different: {_some(result.problems)}"
                step = "Restore other files of it one by one: /rollback <N> <file>"
                yield Finding(Severity.ERROR, what, step, facts.hash, commit)

    def _go_on(self) -> None:
        if self._cancelled():
            raise _Cancelled


def _or_let_go(store: str, name: str) -> str:
    return (
        "The other checkpoints are not affected; this one is left out of the list, and space cannot be reclaimed. "
        f"Bring the store's objects back from a backup, or let it go: git --git-dir {store} update-ref -d {name}"
    )


def _damage_finding(facts: WorkspaceFacts, name: str, commit: str, damage: Sequence[Damage], step: str) -> Finding:
    label = name.removeprefix(f"{REF_ROOT}/{facts.hash}/")
    paths = [f"{display(item.path) if item.path else 'all of it'} ({item.why})" for item in damage]
    what = f"{label} ({commit[:8]}) of {facts.workdir or facts.hash} lacks {_some(paths)}"
    return Finding(Severity.ERROR, what, step, facts.hash, commit)


def _some(names: Sequence[str]) -> str:
    more = f" (+{len(names) - _SHOWN})" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
