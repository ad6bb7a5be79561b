"""The kinds of values that configuration keys hold, and what every section of keys has in common."""

import os
import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

LARGEST_NUMBER = 1_000_000_000
"""Far beyond any sense, and small enough that no product of it overflows."""


class KeyWrong(ValueError):
    """A section's finding about one key of it, or further below: named by where that key was written."""

    def __init__(self, what: str, *key: str) -> None:
        self.key = key
        super().__init__(what)


def number(value: object) -> object:
    """Refuse ``true`` where a number is meant; Python would count it as 1."""
    if isinstance(value, bool):
        raise ValueError("must be a number")  # noqa: TRY004 - pydantic turns only ValueError into a finding
    return value


def _absolute(value: str) -> str:
    """Expand ``~``; a relative path has no meaning for a service that is started anywhere."""
    path = os.path.expanduser(value)
    if "\0" in path:
        raise ValueError("must not contain a NUL character")
    if not os.path.isabs(path):
        raise ValueError("must be an absolute path, or begin with ~")
    return os.path.normpath(path)


def _address(value: str) -> str:
    """Accept only what an HTTP client can call."""
    if not re.match(r"https?://[^/\s]", value):
        raise ValueError("must begin with http:// or https://")
    return value.rstrip("/")


Count = Annotated[int, BeforeValidator(number), Field(gt=0, le=LARGEST_NUMBER)]
Amount = Annotated[float, BeforeValidator(number), Field(gt=0, le=LARGEST_NUMBER, allow_inf_nan=False)]
Port = Annotated[int, BeforeValidator(number), Field(ge=0, le=65535)]
Interval = Annotated[float, BeforeValidator(number), Field(ge=0, le=LARGEST_NUMBER, allow_inf_nan=False)]
AbsolutePath = Annotated[str, AfterValidator(_absolute)]
Address = Annotated[str, AfterValidator(_address)]


class Section(BaseModel):
    """A part of the configuration: no unknown keys, no change after loading, no values in error texts."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=True)
