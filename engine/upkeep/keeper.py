"""Everything upkeep offers, over one store: state, prune, orphans, clear, verify."""

from datetime import UTC, datetime

from engine.store.opened import Store
from engine.upkeep.accounting import Accounting, account
from engine.upkeep.clear import ClearPreview, ClearReport, clear_archives, clear_store, preview_clear
from engine.upkeep.importing import ImportReport, import_store
from engine.upkeep.marker import due
from engine.upkeep.orphans import OrphanPreview, read_orphans
from engine.upkeep.preview import preview_prune
from engine.upkeep.progress import Cancelled, Progress, never, unheard
from engine.upkeep.prune import prune
from engine.upkeep.report import PruneReport
from engine.upkeep.retention import PrunePolicy
from engine.upkeep.sampling import Sample, Sampling
from engine.upkeep.status import ProjectStatus, StoreStatus, read_problem, read_projects, read_status
from engine.upkeep.verify import VerifyReport, verify


class Keeper:
    """Keeps one store; what each method raises is said where it is written, in the module of its noun."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sampling = Sampling(store)

    def status(self) -> StoreStatus:
        """Return what the store holds; takes no lock and never raises for a damaged one."""
        return read_status(self._store)

    def problem(self) -> str | None:
        """Return why the store cannot be read, ``None`` if it can or is not there yet; takes no lock."""
        return read_problem(self._store)

    def projects(self) -> list[ProjectStatus]:
        """Return the workspaces in the store, most recently used first."""
        return read_projects(self._store)

    def account(self) -> Accounting:
        """Return where the space goes; walks every object, takes no lock and never raises for a damaged store."""
        return account(self._store)

    def preview_prune(self, policy: PrunePolicy) -> PruneReport:
        """Return what a prune would drop and free now, beside whoever works in the store: no lock is taken."""
        return preview_prune(self._store, policy, datetime.now(UTC))

    def prune_due(self, min_interval_hours: float) -> bool:
        """Whether the last prune is longer ago than this."""
        return due(self._store.layout, min_interval_hours)

    def prune(self, policy: PrunePolicy, *, progress: Progress = unheard, cancelled: Cancelled = never) -> PruneReport:
        """Drop what the policy says and reclaim the space; with ``policy.dry_run`` only say what would be dropped.

        Raises:
            StoreBusy: somebody works in the store past the bounded wait; nothing was changed.
        """
        return prune(self._store, policy, progress=progress, cancelled=cancelled)

    def orphans(self) -> OrphanPreview:
        """Return the workspaces whose directory is observably gone, to be shown before they are dropped."""
        return read_orphans(self._store)

    def preview_clear(self) -> ClearPreview:
        """Return what `clear` would lose."""
        return preview_clear(self._store)

    def clear(self, *, give_up_interrupted: bool = False) -> ClearReport:
        """Delete every checkpoint of every workspace; the lock file stays.

        Raises:
            StoreBusy: somebody works in the store past the bounded wait; nothing was changed.
        """
        return clear_store(self._store, give_up_interrupted=give_up_interrupted)

    def clear_archives(self) -> ClearReport:
        """Delete the archives of the older layout."""
        return clear_archives(self._store)

    def import_store(
        self, directory: str, *, dry_run: bool = False, progress: Progress = unheard, cancelled: Cancelled = never
    ) -> ImportReport:
        """Take over the history of a store that other software made; nothing in it is changed.

        Raises:
            ImportRefused: there is none, or it cannot be read safely; nothing was changed.
        """
        return import_store(self._store, directory, dry_run=dry_run, progress=progress, cancelled=cancelled)

    def sample(self) -> Sample:
        """Read some of the store's files again; what is broken is mended by the next captures, where it still can be.

        Raises:
            StoreBusy: somebody reclaims space past the bounded wait.
        """
        return self._sampling.look()

    def verify(self, *, progress: Progress = unheard, cancelled: Cancelled = never) -> VerifyReport:
        """Prove that everything listed can be restored."""
        return verify(self._store, progress=progress, cancelled=cancelled)
