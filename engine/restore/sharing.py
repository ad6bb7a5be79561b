"""Whose changes stand at a path that a restore wants back, where not all of them are the ones to be taken back.

Pure decisions on what the ledger tells. A path whose every change since the checkpoint is to go is no matter for
this; of any other only the changes that are to go are reversed, one by one, newest first, over what stands there now.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine.host.paths import display
from engine.model import Entry
from engine.store.acts import Act


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose changes go: those of ``chats`` (``None`` for all), and only of these ``turns`` if any are named.

    ``redoes`` says that the checkpoint is a safety checkpoint, so that what goes are restores too.
    """

    chats: frozenset[str] | None
    turns: frozenset[str] = frozenset()
    redoes: bool = False

    def of_chats(self, act: Act) -> bool:
        """Whether one of the chats did it; an act that no chat is known of counts."""
        return self.chats is None or not act.chat or act.chat in self.chats

    def takes(self, act: Act) -> bool:
        """Whether a tool's act is to be taken back."""
        return act.by_tool and self.of_chats(act) and (not self.turns or act.turn in self.turns)


@dataclass(frozen=True, slots=True)
class Step:
    """Something to reverse: from what to what it led, and whose changes that put in or took out."""

    before: Entry | None
    after: Entry | None
    known: bool
    put_in: frozenset[int]
    took_out: frozenset[int]


@dataclass(frozen=True, slots=True)
class Shared:
    """A path that others changed too: what to reverse, newest first, and who the others are.

    No ``steps`` means that nothing of what is to go is in it. ``others`` are chats, or other turns; where there are
    none, a person's hand came between. ``writers`` are those of them whose lines are in it. ``forward`` says that the
    checkpoint also holds changes that were taken back since, which no reversing brings back.
    """

    steps: tuple[Step, ...]
    others: tuple[str, ...]
    forward: bool = False
    writers: tuple[str, ...] = ()


def shared(acts: Sequence[Act], since: int, target: Entry | None, now: Entry | None, claim: Claim) -> Shared | None:
    """Return how a path is shared, ``None`` if everything since the checkpoint is to be taken back.

    Args:
        acts: all that was done to it, oldest first.
        since: the last record of the ledger when the checkpoint was taken.
        target: what the checkpoint holds.
        now: what stands there, which is where the last act led.
        claim: whose changes go.
    """
    later = [act for act in acts if act.number > since]
    if not later:
        return None
    lasting = [act for act in later if act.by_tool and act.number in later[-1].live_after]
    taken = [act for act in lasting if claim.takes(act)]
    own = _is_chain(later, target, now) and all(claim.of_chats(act) for act in later)
    if own and not (claim.turns and taken):
        return None
    if taken and taken == lasting and not claim.redoes and _is_chain(lasting, target, now):
        return None
    steps = _runs_of(later, claim) if claim.redoes else [_step(act, act) for act in taken]
    others = ("another turn",) if own else _chats(later, claim)
    forward = not claim.redoes and not claim.turns and _lacks_own(acts, later, claim)
    return Shared(tuple(reversed(steps)), others, forward, others if own else _chats(lasting, claim))


def _chats(acts: Sequence[Act], claim: Claim) -> tuple[str, ...]:
    return tuple(sorted({display(act.chat) for act in acts if not claim.of_chats(act)}))


def _is_chain(acts: Sequence[Act], target: Entry | None, now: Entry | None) -> bool:
    """Whether these acts alone lead from what the checkpoint holds to what stands there now."""
    first = not acts[0].known or acts[0].before == target
    return first and acts[-1].after == now and all(_follows(one, other) for one, other in pairwise(acts))


def _follows(one: Act, other: Act) -> bool:
    return not other.known or other.before == one.after


def _lacks_own(acts: Sequence[Act], later: Sequence[Act], claim: Claim) -> bool:
    """Whether changes of the chats that the checkpoint holds are no longer in the content."""
    gone = set(later[0].live_before) - set(later[-1].live_after)
    return any(act.number in gone and claim.takes(act) for act in acts)


def _runs_of(acts: Sequence[Act], claim: Claim) -> list[Step]:
    """Return what the chats did, each run of acts that nothing came between as one step."""
    steps = (_step(run[0], run[-1]) for run in _runs(acts, claim))
    return [step for step in steps if step.before != step.after]


def _runs(acts: Sequence[Act], claim: Claim) -> Iterator[list[Act]]:
    run: list[Act] = []
    for act in acts:
        if run and not (claim.of_chats(act) and _follows(run[-1], act)):
            yield run
            run = []
        if claim.of_chats(act):
            run.append(act)
    if run:
        yield run


def _step(first: Act, last: Act) -> Step:
    before, after = frozenset(first.live_before), frozenset(last.live_after)
    return Step(first.before, last.after, first.known, after - before, before - after)


def live_after(live: Sequence[int], steps: Sequence[Step]) -> tuple[int, ...]:
    """Return whose changes are in a content once these steps have been reversed over it."""
    left = set(live)
    for step in steps:
        left = (left - step.put_in) | step.took_out
    return tuple(sorted(left))
