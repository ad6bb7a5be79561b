"""Names whose commit is gone stop git from reclaiming space; so a prune sets them aside, and back when it is there.

Order that matters in a crash: ``quarantine.json`` lists a name before it leaves ``refs/``, and a name is back in
``refs/`` before the list forgets it. What is in both is done again by the next prune.

A commit is only taken for gone where git can read all that is there; a disk that refuses to be read proves nothing.
For `GRACE` after a name was set aside no space is reclaimed: what only its commit names would go with it, and a backup
may be on its way.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.errors import StoreDamaged
from engine.host import durable
from engine.host.git import Git
from engine.store.layout import REF_ROOT, Layout
from engine.store.quarantine import Quarantined, read_quarantine, write_quarantine
from engine.store.refs import list_names, update_refs
from engine.store.torn import find_torn

GRACE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Found:
    """What leads to nothing: ``new`` are set aside now, ``known`` were before; ``names`` are all that stand."""

    known: Mapping[str, Quarantined]
    new: Mapping[str, Quarantined]
    names: Mapping[str, str]
    kinds: Mapping[str, str]

    @property
    def all(self) -> dict[str, Quarantined]:
        """Everything that is set aside, or about to be."""
        return {**self.known, **self.new}


def settle_dangling(layout: Layout, git: Git, now: datetime) -> tuple[Quarantined, ...]:
    """Set aside what leads to nothing, bring back what leads somewhere again, and return what is set aside then.

    The caller has the store to itself.

    Raises:
        StoreDamaged: names lead to nothing while objects are there that cannot be read; nothing was changed.
        GitFailed: a git step failed; nothing is lost by that.
    """
    found = _look(layout, git, now)
    if found.new:
        write_quarantine(layout, found.all.values())
        for name, entry in found.new.items():
            if entry.commit is None:
                durable.remove(os.path.join(layout.store, name))
        update_refs(git, delete=[name for name, entry in found.new.items() if entry.commit is not None])
    back = _coming_back(found)
    update_refs(git, set_to=[(entry.name, entry.commit) for entry in back if entry.commit])
    left = _left(found)
    if len(left) != len(found.all):
        write_quarantine(layout, left)
    return left


def foresee_dangling(layout: Layout, git: Git, now: datetime) -> tuple[Quarantined, ...]:
    """Return what `settle_dangling` would have set aside afterwards, and change nothing.

    Raises:
        StoreDamaged: names lead to nothing while objects are there that cannot be read.
        GitFailed: a git step failed.
    """
    return _left(_look(layout, git, now))


def _look(layout: Layout, git: Git, now: datetime) -> _Found:
    try:
        known = {entry.name: entry for entry in read_quarantine(layout)}
    except ValueError as error:
        raise StoreDamaged(str(error)) from error
    names = list_names(git, REF_ROOT)
    kinds = _kinds(git, {*names.values(), *(entry.commit for entry in known.values() if entry.commit)})
    new = {name: Quarantined(name, commit, now) for name, commit in names.items() if kinds[commit] != "commit"}
    new |= {name: Quarantined(name, None, now, content) for name, content in find_torn(layout)}
    if new:
        _require_readable(layout)
    return _Found(known, new, names, kinds)


def _coming_back(found: _Found) -> list[Quarantined]:
    """Return what leads somewhere again; a name that stands for something else by now keeps it."""
    return [entry for entry in found.all.values() if _leads_somewhere(found, entry) and entry.name not in found.names]


def _left(found: _Found) -> tuple[Quarantined, ...]:
    return tuple(entry for entry in found.all.values() if not _leads_somewhere(found, entry))


def _leads_somewhere(found: _Found, entry: Quarantined) -> bool:
    return found.kinds.get(entry.commit or "") == "commit"


def _kinds(git: Git, commits: set[str]) -> dict[str, str]:
    """Return what each of these objects is, ``missing`` where it is not there or cannot be read."""
    ordered = sorted(commits)
    if not ordered:
        return {}
    stdin = "".join(f"{commit}\n" for commit in ordered).encode("ascii")
    lines = git.run(["cat-file", "--batch-check=%(objecttype)"], stdin=stdin).decode("ascii", "replace").splitlines()
    return {
        commit: line.rpartition(" ")[2] if line.endswith(" missing") else line
        for commit, line in zip(ordered, lines, strict=True)
    }


def _require_readable(layout: Layout) -> None:
    """Refuse to take anything for gone while there are object files that cannot be read, or half of a pack."""
    for directory, _names, files in os.walk(os.path.join(layout.store, "objects"), onerror=_refuse):
        for name in files:
            path = os.path.join(directory, name)
            try:
                with open(path, "rb") as stream:
                    stream.read(1)
            except OSError as error:
                _refuse(error)
        for name in _half_packs(files):
            raise StoreDamaged(f"names lead to nothing, and {os.path.join(directory, name)} lacks its other half")


def _half_packs(files: Sequence[str]) -> Iterator[str]:
    packs = {name.removesuffix(".pack") for name in files if name.startswith("pack-") and name.endswith(".pack")}
    indexes = {name.removesuffix(".idx") for name in files if name.startswith("pack-") and name.endswith(".idx")}
    yield from sorted({f"{name}.pack" for name in packs - indexes} | {f"{name}.idx" for name in indexes - packs})


def _refuse(error: OSError) -> None:
    raise StoreDamaged(f"names lead to nothing, and {error.filename} cannot be read ({error.strerror})") from error


def quarantine_note(entries: Sequence[Quarantined], now: datetime) -> str:
    """Return the sentence for names that are set aside."""
    what = "1 name leads" if len(entries) == 1 else f"{len(entries)} names lead"
    until = max(entry.since for entry in entries) + GRACE
    waits = f" No space is reclaimed before {until:%Y-%m-%d %H:%M} UTC." if now < until else ""
    return f"{what} to nothing and {'is' if len(entries) == 1 else 'are'} set aside: gateway checkpoints verify.{waits}"


def within_grace(entries: Sequence[Quarantined], now: datetime) -> bool:
    """Whether a name was set aside so lately that its objects may still be brought back."""
    return any(now < entry.since + GRACE for entry in entries)
