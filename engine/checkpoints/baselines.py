"""Where sessions began: a name for each session's baseline, and the comparison with it.

A baseline that is lost cannot be had again. What is recorded in its place says so, as does every comparison with it.
"""

import os
import time
from contextlib import suppress
from datetime import UTC, datetime

from engine.checkpoints.capture import Captured, decode_message, encode_message
from engine.checkpoints.diff import compare
from engine.errors import StoreDamaged
from engine.host import durable
from engine.model import DiffResult, Workspace, session_hash
from engine.store.commits import write_commit
from engine.store.opened import Store
from engine.store.quarantine import names_below
from engine.store.refs import RefRecord, find_ref, list_names, session_ref, update_refs
from engine.store.torn import find_torn

_RENEWED = "renewed_at"


def has_baseline(store: Store, workspace: Workspace, session: str) -> bool:
    """Whether the beginning of a session is recorded and can be read; the caller holds ``store.use``."""
    return find_ref(store.git, session_ref(workspace.hash, session_hash(session)), store.commits) is not None


def record_baseline(store: Store, workspace: Workspace, session: str, captured: Captured) -> None:
    """Record a capture as a session's baseline; the caller holds ``store.use``.

    Raises:
        GitFailed: nothing was recorded.
    """
    name = session_ref(workspace.hash, session_hash(session))
    lost = _is_damaged(store, name) or store.ledger(workspace).knows_session(session)
    store.touch(workspace, looked=False)
    if not lost:
        update_refs(store.git, set_to=[(name, captured.commit)])
        return
    if any(torn == name for torn, _content in find_torn(store.layout, os.path.dirname(name))):
        durable.remove(os.path.join(store.layout.store, name))  # git would not write over it
    now = datetime.now(UTC).isoformat(timespec="seconds")
    message = encode_message("baseline, recorded anew", {_RENEWED: now})
    commit = write_commit(store.git, captured.tree, message, int(time.time()))
    update_refs(store.git, set_to=[(name, commit)])


def _is_damaged(store: Store, name: str) -> bool:
    """Whether a baseline that cannot be read has a name all the same, torn, set aside, or leading to nothing."""
    sessions = os.path.dirname(name)
    if name in list_names(store.git, name) or name in names_below(store.layout, sessions):
        return True
    return any(torn == name for torn, _content in find_torn(store.layout, sessions))


def find_baseline(store: Store, workspace: Workspace, session: str) -> RefRecord | None:
    """Return the baseline of a session, ``None`` if its beginning was not recorded; the caller holds ``store.use``.

    Raises:
        StoreDamaged: it was, and cannot be read.
    """
    name = session_ref(workspace.hash, session_hash(session))
    baseline = find_ref(store.git, name, store.commits)
    if baseline is None and _is_damaged(store, name):
        raise StoreDamaged("the record of how this session began cannot be read")
    return baseline


def compare_with_baseline(store: Store, baseline: RefRecord, captured: Captured) -> DiffResult:
    """Return what differs between a session's baseline and a capture.

    Raises:
        GitFailed: the store could not be read.
    """
    title = "since this session began"
    with suppress(KeyError, TypeError, ValueError):
        renewed = datetime.fromisoformat(decode_message(baseline.message)[1][_RENEWED])
        title = (
            f"since {renewed:%Y-%m-%d %H:%M} UTC, when the beginning of this session was recorded anew; "
            "the first record was lost"
        )
    return compare(store.git, title, baseline.tree, captured.tree, (), captured.gaps)
