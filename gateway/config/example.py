"""Writes a configuration file in which every key is shown and explained.

What was chosen stands there live; every other key is commented out with ``#`` right before it, its default behind it.
An explanation has a space after its ``#``.
"""

import textwrap
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from gateway.config import keys
from gateway.config.keys import Key, Shape
from gateway.config.settings import Settings, Workspace

WIDTH = 100
HEAD = """\
# The configuration of Takeback.
#
# Every key is shown. A line that begins with '#' and no space holds a default: remove the '#' to change it. Each key
# can be set by an environment variable as well: checkpoints.enabled is TAKEBACK_CHECKPOINTS__ENABLED. With _FILE at its
# end, the variable names a file that holds the value, which suits secrets. `gateway doctor` checks this file.
"""


def render(chosen: Mapping[str, Any] | None = None) -> str:
    """Make the text of a configuration file that sets ``chosen``, a tree shaped like the file."""
    lines = HEAD.splitlines()
    for name, field in Settings.model_fields.items():
        lines += ["", *_field(name, field, keys.ROOT.below[name], dict(chosen or {}), 0)]
    return "\n".join(lines) + "\n"


def _field(name: str, field: FieldInfo, key: Key, chosen: Mapping[str, Any], depth: int) -> list[str]:
    """One key with its explanation and everything below it."""
    lines = _explained(field.description or "", depth)
    live = name in chosen
    if key.shape is Shape.SECTION and not field.examples:
        below = chosen[name] if live else {}
        return [*lines, _line(f"{name}:", depth, live=live), *_section(_model(field.annotation), key, below, depth + 1)]
    if key.shape is Shape.NAMED and not field.examples:
        lines.append(_line(f"{name}:", depth, live=live))
        for own_name, value in (chosen[name] if live else {"app": None}).items():
            lines.append(_line(f"{own_name}:", depth + 1, live=live))
            lines += _section(Workspace, key.below["*"], value or {}, depth + 2)
        return lines
    return [*lines, _line(f"{name}: {_written(chosen[name] if live else _shown(field))}", depth, live=live)]


def _section(model: type[BaseModel], key: Key, chosen: Mapping[str, Any], depth: int) -> list[str]:
    lines: list[str] = []
    for name, field in model.model_fields.items():
        lines += _field(name, field, key.below[name], chosen, depth)
    return lines


def _model(annotation: Any) -> type[BaseModel]:
    model = keys.plain(annotation)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise TypeError(f"{annotation} is no section")
    return model


def _shown(field: FieldInfo) -> Any:
    """The default, or an example of what a key without one may hold."""
    if field.examples:
        return field.examples[0]
    return None if field.default is PydanticUndefined else field.default


def _written(value: Any) -> str:
    """A value in YAML, on one line."""
    if isinstance(value, tuple):
        value = list(value)
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _line(text: str, depth: int, *, live: bool) -> str:
    return "  " * depth + ("" if live else "#") + text


def _explained(description: str, depth: int) -> list[str]:
    indent = "  " * depth
    return textwrap.wrap(description, WIDTH, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ")
