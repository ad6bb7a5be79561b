"""Reading a backend's configured options: each by its type, and none left over."""

import difflib
from collections.abc import Mapping
from typing import Any

from engine.errors import ToolRefused


class Options:
    """The options of one backend; every method names the option in what it refuses (``ToolRefused``)."""

    def __init__(self, kind: str, given: Mapping[str, Any]) -> None:
        self._kind = kind
        self._given = {name: value for name, value in given.items() if value is not None}
        self._known: list[str] = []

    def text(self, name: str, default: str = "") -> str:
        """A text without NUL characters."""
        value = self._take(name, default)
        if not isinstance(value, str) or "\0" in value:
            raise self.refusal(name, "must be text")
        return value

    def word(self, name: str, default: str = "") -> str:
        """A text that a program cannot take for one of its own options."""
        value = self.text(name, default)
        if value.startswith("-") or value != value.strip():
            raise self.refusal(name, f"cannot be {value!r}")
        return value

    def directory(self, name: str, default: str) -> str:
        """An absolute path."""
        value = self.text(name, default)
        if not value.startswith("/") or "\n" in value:
            raise self.refusal(name, f"must be an absolute path, not {value!r}")
        return value.rstrip("/") or "/"

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self._take(name, ())
        if not isinstance(value, (list, tuple)) or any(not isinstance(item, str) or "\0" in item for item in value):
            raise self.refusal(name, "must be a list of texts")
        return tuple(value)

    def variables(self, name: str) -> dict[str, str]:
        """Environment variables by name."""
        value = self._take(name, {})
        if not isinstance(value, Mapping) or not all(
            isinstance(each, str) and isinstance(text, str) and each.isidentifier() and "\0" not in text
            for each, text in value.items()
        ):
            raise self.refusal(name, "must hold environment variables, each a name and a text")
        return dict(value)

    def number(self, name: str) -> float | None:
        """A number above 0, ``None`` where none is given."""
        value = self._take(name, None)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            raise self.refusal(name, "must be a number above 0")
        return value

    def switch(self, name: str) -> bool:
        """True or false; false where nothing is given."""
        value = self._take(name, default=False)
        if not isinstance(value, bool):
            raise self.refusal(name, "must be true or false")
        return value

    def finish(self) -> None:
        """Refuse what is left over, with the nearest known option."""
        for name in self._given:
            if name not in self._known:
                near = difflib.get_close_matches(name, self._known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}? " if near else ""
                known = ", ".join(self._known) or "none"
                raise ToolRefused(f"backend {self._kind!r}", f"has no option {name!r}; {hint}(it has: {known})")

    def refusal(self, name: str, reason: str) -> ToolRefused:
        """Make the error that an option is wrong."""
        return ToolRefused(f"backend {self._kind!r}", f"its option {name!r} {reason}")

    def _take(self, name: str, default: Any) -> Any:
        self._known.append(name)
        return self._given.get(name, default)
