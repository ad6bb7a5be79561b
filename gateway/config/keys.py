"""The tree of valid keys, made from the settings: how each is spelled, which is nearest to a wrong one."""

import difflib
from dataclasses import dataclass
from enum import Enum, auto
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from gateway.config.settings import Settings

ENVIRONMENT_PREFIX = "TAKEBACK_"
NESTING = "__"
IGNORED = frozenset({("checkpoints", "delete_orphans")})
"""Keys of older files that are accepted, warned about and without effect."""


class Shape(Enum):
    """What stands at a key."""

    VALUE = auto()
    LIST = auto()
    SECTION = auto()
    NAMED = auto()


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its shape, and what stands below it. Below ``NAMED`` every name leads to the same section."""

    shape: Shape
    below: "dict[str, Key]"


def plain(annotation: Any) -> Any:
    """The type itself, without ``Annotated`` and ``| None``."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return plain(get_args(annotation)[0])
    if origin in (Union, UnionType):
        (kept,) = (part for part in get_args(annotation) if part is not type(None))
        return plain(kept)
    return annotation


def _key(annotation: Any) -> Key:
    kind = plain(annotation)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return Key(Shape.SECTION, _below(kind))
    origin = get_origin(kind)
    if origin is dict:
        return Key(Shape.NAMED, {"*": _key(get_args(kind)[1])})
    if origin in (tuple, list):
        return Key(Shape.LIST, {})
    return Key(Shape.VALUE, {})


def _below(model: type[BaseModel]) -> dict[str, Key]:
    return {name: _key(field.annotation) for name, field in model.model_fields.items()}


ROOT = Key(Shape.SECTION, _below(Settings))


def child(key: Key, name: str) -> Key | None:
    """What stands under ``name``, if that is a valid key there."""
    return key.below.get("*") if key.shape is Shape.NAMED else key.below.get(name)


def find(path: tuple[str, ...]) -> Key | None:
    """The key at a path, if valid."""
    key: Key | None = ROOT
    for name in path:
        key = child(key, name) if key else None
    return key


def dotted(path: tuple[str | int, ...]) -> str:
    """How a key is written for people: ``workspaces.app.path``, ``telegram.allow[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def variable(path: tuple[str, ...]) -> str:
    """The environment variable that overrides a key."""
    return ENVIRONMENT_PREFIX + NESTING.join(part.upper() for part in path)


def all_paths(key: Key = ROOT, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every valid path; ``*`` stands for a name of one's own."""
    paths: list[tuple[str, ...]] = []
    for name, below in key.below.items():
        path = (*prefix, name)
        paths += [path, *all_paths(below, path)]
    return paths


def nearest(path: tuple[str, ...]) -> tuple[str, ...]:
    """The valid key that was most likely meant.

    The same section first, then a key of that name anywhere, then whatever looks most alike.
    """
    parent = find(path[:-1])
    if parent and (close := difflib.get_close_matches(path[-1], parent.below, n=1)):
        return (*path[:-1], close[0])
    if any(known[-1] == path[-1] for known in all_paths()):
        elsewhere = [known for known in all_paths() if known[-1] == path[-1]]
        return min(elsewhere, key=lambda known: (len(known), known))
    known = {dotted(candidate): candidate for candidate in all_paths()}
    return known[difflib.get_close_matches(dotted(path), known, n=1, cutoff=0.0)[0]]
