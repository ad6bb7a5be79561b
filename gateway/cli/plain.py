"""Values as JSON for scripts."""

import json
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any

import click


def print_json(value: Any) -> None:
    """Print a value of ours, indented; times are ISO 8601, output is ASCII."""
    click.echo(json.dumps(value, indent=2, default=_plain))


def printable(text: str) -> str:
    """Return text for a terminal: what it could not show, or would obey, as an escape."""
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
