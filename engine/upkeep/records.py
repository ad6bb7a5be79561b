"""Whether the store's own files can be read: project files, ledgers, journals, indexes, names."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

from engine.model import Workspace
from engine.store.journal import read_restore
from engine.store.layout import Layout, workspace_hash
from engine.store.ledger import load_ledger
from engine.store.refs import base_ref
from engine.upkeep.facts import WorkspaceFacts, read_pending
from engine.upkeep.findings import Finding, Severity

_TORN = "is not what Takeback writes there"
_REF_CONTENT = re.compile(rb"[0-9a-f]{40}\n")


def check_names(layout: Layout) -> Iterator[Finding]:
    """Look at the names that lie in files of their own; git passes over a torn one in silence."""
    for directory, _names, files in os.walk(os.path.join(layout.store, "refs")):
        for name in files:
            path = os.path.join(directory, name)
            if not name.endswith(".lock") and not _is_ref(path):
                what = f"the name {os.path.relpath(path, layout.store)} is torn; the checkpoint it stood for is lost"
                yield Finding(Severity.ERROR, what, f"Nothing else is affected. Remove it: rm {path}")


def _is_ref(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return _REF_CONTENT.fullmatch(stream.read(64)) is not None
    except FileNotFoundError:
        return True  # packed or dropped meanwhile
    except OSError:
        return False


def check_records(layout: Layout, facts: WorkspaceFacts) -> Iterator[Finding]:
    """Check what lies beside the objects for one workspace."""
    yield from _check_project(layout, facts)
    yield from _check_named(layout, facts)
    yield from _check_ledger(layout, facts)
    yield from _check_journal(layout, facts)
    yield from _check_index(layout, facts)


def _check_project(layout: Layout, facts: WorkspaceFacts) -> Iterator[Finding]:
    path = layout.project(facts.hash)
    if facts.project is None:
        what = f"{path} {_TORN}" if os.path.exists(path) else f"{path} is missing"
        step = "Take a checkpoint in that workspace; it is written anew. Until then prune leaves the workspace alone."
        yield Finding(Severity.WARNING, what, step, facts.hash)
    elif workspace_hash(facts.project.workdir) != facts.hash:
        what = f"{path} names {facts.project.workdir}, whose checkpoints have another name"
        yield Finding(Severity.WARNING, what, "Take a checkpoint in the workspace; it is written anew.", facts.hash)


def _check_named(layout: Layout, facts: WorkspaceFacts) -> Iterator[Finding]:
    if not facts.nameless or base_ref(facts.hash) in read_pending(layout):
        return
    where = facts.workdir or facts.hash
    what = f"the names of {where} are lost, and with them its checkpoints; nothing is pruned meanwhile"
    step = (
        f"Bring refs/ and packed-refs in {layout.store} back from a backup. "
        f"If they were removed on purpose: rm {layout.project(facts.hash)}"
    )
    yield Finding(Severity.ERROR, what, step, facts.hash)


def _check_ledger(layout: Layout, facts: WorkspaceFacts) -> Iterator[Finding]:
    path = layout.ledger(facts.hash)
    try:
        load_ledger(path)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"the ledger {path} cannot be read ({error}), so this workspace cannot be listed or restored"
        step = f"Set it aside: mv {path} {path}.damaged - restores then cannot tell the agent's work from hand-edits."
        yield Finding(Severity.ERROR, what, step, facts.hash)


def _check_journal(layout: Layout, facts: WorkspaceFacts) -> Iterator[Finding]:
    path = layout.journal(facts.hash)
    where = facts.workdir or facts.hash
    try:
        journal = read_restore(layout, Workspace("", "", facts.hash))
    except ValueError as error:
        what = f"the journal of an interrupted restore of {where} cannot be read ({error})"
        step = f"Set it aside: mv {path} {path}.damaged - then look through the files and restore again."
        yield Finding(Severity.ERROR, what, step, facts.hash)
        return
    if journal is None:
        return
    known = {item.commit for item in facts.checkpoints}
    if known.issuperset({journal.target, journal.safety}):
        what = f"a restore of {where} to checkpoint {journal.target[:8]} was interrupted"
        yield Finding(Severity.WARNING, what, "Start the gateway; it finishes the restore.", facts.hash, journal.target)
    else:
        what = f"an interrupted restore of {where} names a checkpoint that is gone"
        step = f"Set it aside: mv {path} {path}.damaged - then look through the files and restore again."
        yield Finding(Severity.ERROR, what, step, facts.hash, journal.target)


def _check_index(layout: Layout, facts: WorkspaceFacts) -> Iterator[Finding]:
    path = layout.index(facts.hash)
    if os.path.exists(path) and not _is_sound(path):
        what = f"the index {path} is damaged"
        yield Finding(Severity.INFO, what, "Nothing to do: the next checkpoint reads the files again.", facts.hash)


def _is_sound(path: str) -> bool:
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=10)) as connection:
            return bool(connection.execute("PRAGMA quick_check").fetchone() == ("ok",))
    except sqlite3.OperationalError:
        return os.path.exists(path + "-journal")  # somebody writes it now, or was killed; SQLite mends that
    except sqlite3.DatabaseError:
        return False
