"""Brace expansion: `{a,b}` and `{1..3}` make several words out of one, before anything else happens to them."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

MAX_WORDS = 256
"""A word that would become more than this is treated as one that cannot be known."""

MAX_BRACES = 64

SEQUENCE_PARTS = (2, 3)


class Kind(Enum):
    """What an atom of a word is."""

    PLAIN = auto()  # one unquoted character
    QUOTED = auto()  # text that means itself
    PIPE = auto()  # the path of a process substitution
    HOLE = auto()  # unknown text, inside one word
    HOLES = auto()  # unknown text that may split into any number of words


@dataclass(frozen=True, slots=True)
class Atom:
    """A piece of a word."""

    text: str
    kind: Kind


class _TooManyWordsError(Exception):
    pass


def expand_braces(atoms: list[Atom]) -> list[list[Atom]] | None:
    """The rows of atoms a word becomes; None when they are too many to write down."""
    opened = sum(_is(atom, "{") for atom in atoms)
    if opened == 0:
        return [atoms]
    if opened > MAX_BRACES:
        return None
    try:
        return _expand(atoms)
    except _TooManyWordsError:
        return None


def _expand(atoms: list[Atom]) -> list[list[Atom]]:
    start = next((index for index, atom in enumerate(atoms) if _is(atom, "{")), None)
    if start is None:
        return [atoms]
    end, commas = _closing(atoms, start)
    inside = _alternatives(atoms, start, end, commas) if end is not None else None
    if end is None or inside is None:
        return [atoms[: start + 1] + rest for rest in _expand(atoms[start + 1 :])]
    return _product(atoms[:start], inside, _expand(atoms[end + 1 :]))


def _closing(atoms: list[Atom], start: int) -> tuple[int | None, list[int]]:
    """Where the brace opened at `start` closes, and the commas that belong to it."""
    depth = 0
    commas: list[int] = []
    for index in range(start, len(atoms)):
        if _is(atoms[index], "{"):
            depth += 1
        elif _is(atoms[index], "}"):
            depth -= 1
            if depth == 0:
                return index, commas
        elif depth == 1 and _is(atoms[index], ","):
            commas.append(index)
    return None, commas


def _alternatives(atoms: list[Atom], start: int, end: int, commas: list[int]) -> list[list[Atom]] | None:
    if not commas:
        return _sequence(atoms[start + 1 : end])
    bounds = [start, *commas, end]
    parts = [atoms[left + 1 : right] for left, right in pairwise(bounds)]
    return [row for part in parts for row in _expand(part)]


def _sequence(inside: list[Atom]) -> list[list[Atom]] | None:
    if any(atom.kind is not Kind.PLAIN for atom in inside):
        return None
    parts = "".join(atom.text for atom in inside).split("..")
    if len(parts) not in SEQUENCE_PARTS:
        return None
    step = _integer(parts[2]) if len(parts) == SEQUENCE_PARTS[1] else 1
    if step is None:
        return None
    first, last = _integer(parts[0]), _integer(parts[1])
    if first is not None and last is not None:
        width = max(map(len, parts[:2])) if any(_is_padded(part) for part in parts[:2]) else 0
        return [_plain(str(number).zfill(width)) for number in _steps(first, last, step)]
    if all(len(part) == 1 and part.isascii() and part.isalpha() for part in parts[:2]):
        return [_plain(chr(number)) for number in _steps(ord(parts[0]), ord(parts[1]), step)]
    return None


def _integer(text: str) -> int | None:
    digits = text.removeprefix("-").removeprefix("+")
    return int(text) if digits.isascii() and digits.isdigit() and len(text) < len(str(2**63)) else None


def _is_padded(text: str) -> bool:
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits.startswith("0")


def _steps(first: int, last: int, step: int) -> Iterable[int]:
    stride = max(1, abs(step))
    numbers = range(first, last + 1, stride) if first <= last else range(first, last - 1, -stride)
    if len(numbers) > MAX_WORDS:
        raise _TooManyWordsError
    return numbers


def _product(before: list[Atom], inside: list[list[Atom]], after: list[list[Atom]]) -> list[list[Atom]]:
    if len(inside) * len(after) > MAX_WORDS:
        raise _TooManyWordsError
    return [before + middle + end for middle in inside for end in after]


def _plain(text: str) -> list[Atom]:
    return [Atom(character, Kind.PLAIN) for character in text]


def _is(atom: Atom, character: str) -> bool:
    return atom.kind is Kind.PLAIN and atom.text == character
