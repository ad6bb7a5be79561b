"""The words after a command's name: quotes as in a shell, ``--flags``, ``--`` before paths with a dash."""

import difflib
import shlex
from collections.abc import Collection
from dataclasses import dataclass

from gateway.commands.base import BadUsage

_DASHES = ("-", "—")
"""What begins a flag; phones turn two hyphens into one long dash."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The flags given and the other words in order."""

    flags: frozenset[str]
    words: tuple[str, ...]


def parse_arguments(command: str, text: str, *, flags: Collection[str] = ()) -> Arguments:
    """Split what follows ``command``.

    Raises:
        BadUsage: a quote is not closed, or a flag is not one of ``flags``.
    """
    given: set[str] = set()
    words: list[str] = []
    pending = _split(command, text)
    for index, word in enumerate(pending):
        if word == "--":
            words.extend(pending[index + 1 :])
            break
        if word[:1] in _DASHES and len(word) > 1:
            given.add(_known_flag(command, word, flags))
        else:
            words.append(word)
    return Arguments(frozenset(given), tuple(words))


def no_arguments(command: str, text: str) -> None:
    """Refuse words after a command that takes none."""
    if text.strip():
        raise BadUsage(f"/{command} takes nothing after it. Send /{command} alone.")


def nearest(word: str, known: Collection[str]) -> str | None:
    """Return the known word that ``word`` was probably meant to be."""
    matches = difflib.get_close_matches(word.casefold(), list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def _split(command: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        raise BadUsage(
            f"/{command}: a quote or backslash is left open in: {text.strip()}. "
            "Close it, or put a backslash before a plain one."
        ) from None


def _known_flag(command: str, word: str, flags: Collection[str]) -> str:
    flag = word.replace("—", "--", 1) if word.startswith("—") else word
    if flag in flags:
        return flag
    meant = nearest(flag, flags)
    hint = f" Did you mean {meant}?" if meant else ""
    raise BadUsage(f"/{command} does not know {word}.{hint} A path that begins with a dash goes after -- .")
