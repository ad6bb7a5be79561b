"""Takeback's engine: a library that stands alone.

``from engine import Engine`` gives the whole of it; `engine.model` holds the values, `engine.errors` what is raised.
The import is late, so that a program that only needs a value does not pay for git.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api import Engine

__all__ = ["Engine"]


def __getattr__(name: str) -> Any:
    if name == "Engine":
        from engine.api import Engine

        return Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
