"""What the configuration lets a prune drop, for the running service and for commands that need nothing else of it."""

from contextlib import suppress

from engine.api import Engine, PrunePolicy, WorkspaceRule
from engine.errors import EngineError
from gateway.config import Settings
from gateway.config.settings import MIB


def make_prune_policy(
    settings: Settings,
    engine: Engine,
    *,
    retention_days: float | None = None,
    max_size_mb: float | None = None,
    asked_for: bool = True,
) -> PrunePolicy:
    """Say what the configuration allows to be dropped; what is given beside it comes first. Blocking.

    Unless somebody asked for it, the age and number of a workspace with ``auto_prune: false`` do not count.
    """
    common = settings.checkpoints
    cap_mb = common.max_total_size_mb if max_size_mb is None else max_size_mb
    rules = {}
    for name, workspace in settings.workspaces.items():
        if workspace.backend.is_container or not workspace.checkpoints.model_fields_set:
            continue
        own = settings.checkpoints_of(name)
        # A workspace whose directory is not there has no name in the store now; the common rules hold for it.
        with suppress(EngineError):
            opened = engine.open_workspace(workspace.path)
            days = own.retention_days if retention_days is None else retention_days
            counts = asked_for or own.auto_prune
            rules[opened.hash] = WorkspaceRule(days, own.max_snapshots) if counts else WorkspaceRule(None, None)
    return PrunePolicy(
        retention_days=common.retention_days if retention_days is None else retention_days,
        max_snapshots=common.max_snapshots,
        max_size_bytes=int(cap_mb * MIB),
        rules=rules,
    )
