"""Backends of services that rent out sandboxes, each with its service on loopback, and what all of them have to do."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from engine.backends.base import Sandbox, Site
from tests.daytona_service import DaytonaService
from tests.engine.backends.conftest import Elsewhere
from tests.modal_service import opened_modal
from tests.rented import Machine, opened
from tests.vercel_service import VercelService

NAME = "takeback-0123456789ab"
"""What a sandbox is called unless it is given a name."""

OPTIONS: Mapping[str, dict[str, object]] = {
    "modal": {"token_id": "ak-1", "token_secret": "as-1"},
    "daytona": {"api_key": "dtn_1", "target": "here"},
    "vercel_sandbox": {"token": "vcp_1", "team_id": "team_1", "project_id": "prj_1"},
}
OPEN: Mapping[str, Callable[[Path], AbstractContextManager[Any]]] = {
    "modal": opened_modal,
    "daytona": lambda base: opened(DaytonaService(base)),
    "vercel_sandbox": lambda base: opened(VercelService(base)),
}


def options(kind: str, service: Any, base: Path, **more: object) -> dict[str, object]:
    """What makes a backend that asks this service, with its workspace below ``base``."""
    server = f"{service.address}/api" if kind == "daytona" else service.address
    return {**OPTIONS[kind], "server": server, "path": str(base / "inside"), **more}


class Rented:
    """A service, and the places that a test made in it."""

    def __init__(self, kind: str, base: Path, service: Any) -> None:
        self.kind = kind
        self.base = base
        self.service = service
        self.places: list[Elsewhere] = []

    def begin(self, base: Path) -> None:
        """Have the next places below another directory."""
        self.base = base

    def end(self) -> None:
        """Close what was made, and leave no sandbox."""
        self.service.refusal = None
        for place in self.places:
            place.backend.close()
        for machine in self.service.machines.values():
            machine.stop()
        self.places.clear()
        self.service.machines.clear()

    def place(self, **more: object) -> Elsewhere:
        """Make another backend of the workspace, as another process would."""
        self.places.append(Elsewhere(self.base, self.kind, options(self.kind, self.service, self.base, **more)))
        return self.places[-1]

    def site(self) -> Site:
        """What a backend is told of its workspace."""
        return Site(str(self.base / "ws"), "0123456789abcdef", str(self.base / "private"), {})

    def machine(self, name: str = NAME) -> Machine | None:
        """The sandbox of that name, if it runs."""
        found = self.service.machines.get(f"sb-{name}" if self.kind == "modal" else name)
        return found if found is not None and found.running else None

    def labels(self, name: str = NAME) -> dict[str, str]:
        """What is written on the sandbox."""
        machine = self.machine(name)
        assert machine is not None
        written = machine.facts["labels" if self.kind == "daytona" else "tags"]
        return {label: value for label, value in written.items() if label.startswith("takeback-")}


@contextmanager
def rented(kind: str, base: Path) -> Iterator[Rented]:
    """Have a service, and close what was made in it."""
    with OPEN[kind](base) as service:
        made = Rented(kind, base, service)
        yield made
        made.end()


def sandbox(place: Elsewhere) -> Sandbox:
    """The backend, as the file tools see it."""
    assert isinstance(place.backend, Sandbox)
    return place.backend
