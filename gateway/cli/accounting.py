"""Where the space of the store goes, for people who want some of it back."""

from typing import TYPE_CHECKING

from gateway.cli import opening
from gateway.cli.humane import size
from gateway.cli.plain import printable
from gateway.cli.policy import prune_policy

if TYPE_CHECKING:
    from engine.api import Accounting, Engine, PruneReport

SHOWN_IDS = 3
ID_CHARACTERS = 7
SHOWN_FILES = 5
SHOWN_WORKSPACES = 10


def find_prunable(engine: "Engine") -> "PruneReport | None":
    """What a prune would do now by the configuration, ``None`` where there is none that can be used."""
    settings = opening.find_settings()
    if settings is None:
        return None
    policy, _unknown = prune_policy(settings, engine)
    return engine.upkeep.preview_prune(policy)


def accounting_lines(found: "Accounting", prunable: "PruneReport | None") -> list[str]:
    """The end of the status: what each workspace alone holds, the largest files, and what a prune would free."""
    if found.problem is not None:
        return ["", f"Where the space goes is not known: {found.problem}"]
    lines = []
    if found.workspaces:
        lines += ["", "Held by one workspace alone:"]
        lines += [
            f"  {size(use.unique_bytes):>9}  {_where(use.workdir, use.hash)}"
            for use in found.workspaces[:SHOWN_WORKSPACES]
        ]
        if found.workspaces[SHOWN_WORKSPACES:]:
            rest = found.workspaces[SHOWN_WORKSPACES:]
            lines.append(f"  {size(sum(use.unique_bytes for use in rest)):>9}  ({len(rest)} more workspaces)")
        if found.shared_bytes:
            lines.append(f"  {size(found.shared_bytes):>9}  (shared by several)")
    if found.largest:
        lines += ["", "Largest files:"]
        for item in found.largest[:SHOWN_FILES]:
            where = f"{printable(item.path)} in {_where(item.workdir, 'a workspace of unknown place')}"
            lines.append(f"  {size(item.stored_bytes):>9}  {where}, {_held_by(item.checkpoints)}")
    if prunable is not None and not prunable.errors and (prunable.decisions or prunable.freed_bytes):
        count = len(prunable.decisions)
        dropped = "" if not count else f" and drop {count} {'thing' if count == 1 else 'things'}"
        freed = f"A prune would free about {size(prunable.freed_bytes)}{dropped}: gateway prune --dry-run"
        lines += ["", freed]
    if prunable is not None and prunable.over_cap is not None:
        lines += ["", *(f"Even after a prune {printable(note)}." for note in prunable.notes)]
    return lines


def _where(workdir: str | None, otherwise: str) -> str:
    return otherwise if workdir is None else printable(workdir)


def _held_by(checkpoints: tuple[str, ...]) -> str:
    if not checkpoints:
        return "held for a session or a turn alone"
    shown = ", ".join(name[:ID_CHARACTERS] for name in checkpoints[:SHOWN_IDS])
    more = f" (+{len(checkpoints) - SHOWN_IDS})" if len(checkpoints) > SHOWN_IDS else ""
    return f"in {shown}{more}"
