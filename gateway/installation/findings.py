"""What the doctor finds, and whom it examines."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gateway.config import ConfigInvalid, Configuration
from gateway.home import Home

if TYPE_CHECKING:
    from engine.api import Engine

UNITS = "/etc/systemd/system"
"""Where an administrator installs units."""


class Level(StrEnum):
    """How grave a finding is. Only a problem makes the installation unhealthy."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at, what was found, and what to do; ``remedy`` is empty where nothing is to be done."""

    name: str
    level: Level
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Patient:
    """What is examined. ``configuration`` is ``None`` where it is invalid; ``invalid`` then says why.

    ``units`` is where units would be installed.
    """

    home: Home
    engine: "Engine"
    configuration: Configuration | None
    invalid: ConfigInvalid | None
    units: str = UNITS
