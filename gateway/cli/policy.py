"""What a prune may drop, for the commands that prune or say what a prune would do."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from gateway.cli import opening

if TYPE_CHECKING:
    from engine.api import Engine, PrunePolicy
    from gateway.config.settings import Settings


def prune_policy(
    settings: "Settings", engine: "Engine", *, retention_days: float | None = None, max_size_mb: float | None = None
) -> "tuple[PrunePolicy, str | None]":
    """Return what the configuration lets go; what is given beside it comes first.

    What sessions began with goes, too, once they are over. Which are over only the database knows; where it cannot be
    read all of it stays, and the second value says so.
    """
    from gateway.pruning import make_prune_policy
    from gateway.state.errors import StateError

    policy = make_prune_policy(settings, engine, retention_days=retention_days, max_size_mb=max_size_mb)
    path = opening.home().database
    if not os.path.exists(path):
        return policy, None
    try:
        return replace(policy, ended_sessions=_ended(path)), None
    except StateError as error:
        return policy, f"what sessions began with stays, also of those that are over: {error}"


def _ended(path: str) -> frozenset[str]:
    import anyio

    from engine.model import session_hash
    from gateway.turns.transcripts import read_ended

    return frozenset(map(session_hash, anyio.run(read_ended, path)))
