"""Which checkpoint a person means by a number or the beginning of an id.

A number is a position in the list last shown in that chat; with no list shown yet it counts from the newest.
What is no position is the beginning of an id, from four characters on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.model import Checkpoint
from gateway.commands.base import Declined
from gateway.render import SHORT_ID

MIN_PREFIX = 4
"""The fewest characters of an id that name a checkpoint."""

NONE_ANY_MORE = "the store holds no checkpoint of this workspace any more"
"""What is said where there were checkpoints and are none."""

_REFERENCE = re.compile(r"[0-9a-fA-F]+")


class NoSuchCheckpoint(Declined):
    """A number or id that names no checkpoint; the message says what to type instead."""


@dataclass(frozen=True, slots=True)
class Named:
    """A checkpoint and how to name it again in a command without meaning another one."""

    checkpoint: Checkpoint
    again: str


def is_reference(word: str) -> bool:
    """Whether a word can be a number or the beginning of an id at all."""
    return _REFERENCE.fullmatch(word) is not None


def resolve(word: str, known: Sequence[Checkpoint], shown: Sequence[str], *, had: bool = False) -> Named:
    """Find the checkpoint meant by ``word``.

    ``known`` are the workspace's checkpoints, newest first; ``shown`` the ids of the list last shown, empty
    when none was; ``had`` is whether there ever were any.

    Raises:
        NoSuchCheckpoint: there is no such position or id, several ids begin so, or it was pruned since.
    """
    positions = shown or [checkpoint.id for checkpoint in known]
    if had and not positions:
        raise _gone(f"Checkpoint {word}", known)
    number = _position(word, len(positions))
    if number is None:
        return _by_prefix(word, known, positions)
    wanted = positions[number - 1]
    for checkpoint in known:
        if checkpoint.id == wanted:
            return Named(checkpoint, word if shown else wanted[:SHORT_ID])
    raise _gone(f"Checkpoint {number} of the list, {wanted[:SHORT_ID]},", known)


def _position(word: str, count: int) -> int | None:
    """Return the number ``word`` stands for, ``None`` when it can only be an id."""
    if not (word.isascii() and word.isdecimal()) or (word.startswith("0") and len(word) >= MIN_PREFIX):
        return None
    number = int(word)
    if 1 <= number <= count:
        return number
    if len(word) >= MIN_PREFIX:
        return None
    if number == 0:
        raise NoSuchCheckpoint("The list starts at 1. /rollback shows it.")
    if count == 0:
        raise NoSuchCheckpoint(f"There is no checkpoint {number}: none has been taken yet.")
    entries = "1 entry" if count == 1 else f"{count} entries"
    raise NoSuchCheckpoint(f"There is no checkpoint {number}: the list has {entries}. /rollback shows it.")


def _by_prefix(word: str, known: Sequence[Checkpoint], positions: Sequence[str]) -> Named:
    prefix = word.lower()
    if len(prefix) < MIN_PREFIX:
        raise NoSuchCheckpoint(f"{word} is too short for an id: give {MIN_PREFIX} characters or more.")
    found = [checkpoint for checkpoint in known if checkpoint.id.startswith(prefix)]
    if len(found) == 1:
        return Named(found[0], word)
    if found:
        ids = ", ".join(checkpoint.id[: max(SHORT_ID, len(prefix) + 4)] for checkpoint in found)
        raise NoSuchCheckpoint(f"Several ids begin with {word}: {ids}. Give more characters.")
    if any(shown.startswith(prefix) for shown in positions):
        raise _gone(f"Checkpoint {word}", known)
    raise NoSuchCheckpoint(f"No checkpoint is numbered {word} or has an id that begins so. /rollback shows the list.")


def _gone(which: str, known: Sequence[Checkpoint]) -> NoSuchCheckpoint:
    """Tell one that was dropped beside others from a store that holds nothing of the workspace any more."""
    if known:
        return NoSuchCheckpoint(f"{which} was pruned since. /rollback shows the list.")
    return NoSuchCheckpoint(
        f"{which} is gone: {NONE_ANY_MORE}. It was cleared, deleted or pruned by age. Nothing was changed."
    )
