"""Comparisons for people: a checkpoint with now, what a turn changed, what changed since a session began."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from engine.checkpoints.baselines import compare_with_baseline, find_baseline
from engine.checkpoints.diff import compare
from engine.checkpoints.history import get_held, list_held
from engine.guard import Guard
from engine.host.files import Tree
from engine.model import DiffResult, Gap, GapReason, Workspace
from engine.restore.selection import parse_selection
from engine.store.opened import Store


class Comparisons:
    """The comparisons over one store.

    Args:
        store: the store.
        guard: captures what is there now.
        open_tree: opens a workspace's files.
    """

    def __init__(
        self, store: Store, guard: Guard, open_tree: Callable[[Workspace], AbstractContextManager[Tree]]
    ) -> None:
        self._store = store
        self._guard = guard
        self._open_tree = open_tree

    def with_now(self, workspace: Workspace, checkpoint_id: str, selection: Sequence[str]) -> DiffResult:
        """Compare a checkpoint with the workspace as it is now; see `engine.api.Engine.diff`."""
        with self._store.use(workspace, "a diff"):
            held = get_held(self._store, workspace, list_held(self._store, workspace), checkpoint_id)
            specs: tuple[str, ...] = ()
            if selection:
                with self._open_tree(workspace) as tree:
                    specs = parse_selection(selection, tree, self._store.git, held.tree).texts
            captured = self._guard.capture(workspace)
            title = f"since checkpoint {held.checkpoint.id[:8]}: {held.checkpoint.reason}"
            gaps = _joined_gaps(held.checkpoint.gaps, captured.gaps)
            return compare(self._store.git, title, held.tree, captured.tree, specs, gaps)

    def of_turn(self, workspace: Workspace, turn: str) -> DiffResult | None:
        """Return what a turn's tools changed, ``None`` if they changed nothing or it is no longer known."""
        with self._store.use(workspace, "a diff"):
            writes = self._store.ledger(workspace).writes_of([turn])
            held = {item.checkpoint.id: item for item in list_held(self._store, workspace)}
            known = [write for write in writes if write.checkpoint in held and write.after is not None]
            if not known or known[-1].after is None:
                return None
            first = held[known[0].checkpoint or ""]
            paths = sorted({path for write in known for path in write.changes})
            title = f"changed by the turn after checkpoint {first.checkpoint.id[:8]}"
            after = known[-1].after if paths else first.tree
            shown = compare(self._store.git, title, first.tree, after, paths, first.checkpoint.gaps, literal=True)
            unreached = {path: why for write in known for path, why in write.unreached.items()}
            return replace(shown, unreached=tuple(Gap(path, GapReason(why)) for path, why in unreached.items()))

    def since_session(self, workspace: Workspace, session: str) -> DiffResult | None:
        """Return everything that changed since a session began, ``None`` if its beginning was not recorded."""
        with self._store.use(workspace, "a diff"):
            baseline = find_baseline(self._store, workspace, session)
            if baseline is None:
                return None
            return compare_with_baseline(self._store, baseline, self._guard.capture(workspace))


def _joined_gaps(gaps: Sequence[Gap], more: Sequence[Gap]) -> tuple[Gap, ...]:
    """The gaps of both, of one path the first."""
    known = {gap.path for gap in gaps}
    return (*gaps, *(gap for gap in more if gap.path not in known))
