"""Whether the store's own files can be read: project files, ledgers, journals, indexes, names."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

from engine.model import Workspace
from engine.store.journal import read_restore
from engine.store.layout import REF_ROOT, Layout, workspace_hash
from engine.store.ledger import load_ledger
from engine.store.quarantine import names_below, read_quarantine
from engine.store.refs import base_ref
from engine.store.torn import find_torn
from engine.upkeep.facts import WorkspaceFacts, read_pending
from engine.upkeep.findings import Finding, Severity

_TORN = "is not what Takeback writes there"
_SHOWN_CONTENT = 60


def check_names(layout: Layout) -> Iterator[Finding]:
    """Look at the names that are torn, and at those that were set aside."""
    for name, _content in find_torn(layout):
        path = os.path.join(layout.store, name)
        what = f"the name {name} is torn; the checkpoint it stood for is lost"
        yield Finding(Severity.ERROR, what, f"Nothing else is affected. The next prune sets it aside, or: rm {path}")
    try:
        entries = read_quarantine(layout)
    except ValueError as error:
        step = f"Set it aside: mv {layout.quarantine} {layout.quarantine}.damaged - nothing is pruned meanwhile."
        yield Finding(Severity.ERROR, str(error), step)
        return
    for entry in entries:
        stood_for = entry.commit or f"no commit ({entry.content[:_SHOWN_CONTENT]!r})"
        what = f"the name {entry.name} led to nothing and was set aside ({entry.since:%Y-%m-%d}); it was {stood_for}"
        step = (
            "Bring the store's objects back from a backup, then run: gateway prune - it is listed again. "
            f"To let go of all that is set aside: rm {layout.quarantine}"
        )
        yield Finding(Severity.WARNING, what, step, checkpoint=entry.commit)


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
    if names_below(layout, f"{REF_ROOT}/{facts.hash}"):
        return  # set aside, which is said of each
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
    except ValueError as error:
        what = (
            f"a line of the ledger {path} cannot be read ({error}); what the agent wrote then counts as edited by hand"
        )
        step = "Put the file back from a backup, or go back with --all: it needs no ledger."
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
