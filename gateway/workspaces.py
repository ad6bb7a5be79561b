"""The directories that chats may work in: by name, with the settings that hold there.

A name comes from the configuration. The terminal chat may also work in a directory that was named on the command line;
its name is then its own absolute path.
"""

import os
from dataclasses import dataclass

from engine.errors import EngineError
from engine.model import Workspace
from gateway.commands.failures import sentence
from gateway.config.settings import Settings
from gateway.offload import Offload
from gateway.render import name as shown


@dataclass(frozen=True, slots=True)
class Opened:
    """A directory as it is now: ``workspace`` is ``None`` where it cannot be used, ``problem`` then says why."""

    workspace: Workspace | None
    problem: str
    root: str


class Workspaces:
    """Finds and opens workspaces. ``default`` is where a new chat begins."""

    def __init__(self, settings: Settings, offload: Offload, default: str) -> None:
        self.settings = settings
        self.default = default
        self._offload = offload

    def path(self, name: str) -> str | None:
        """Where a workspace is; ``None`` for a name that is not configured (any more)."""
        configured = self.settings.workspaces.get(name)
        if configured is not None:
            return configured.path
        return name if os.path.isabs(name) else None

    async def open(self, name: str) -> Opened:
        """Open a workspace; what is wrong with it is part of the answer."""
        path = self.path(name)
        if path is None:
            return Opened(None, f"The workspace {shown(name)} is not configured any more. /workspace lists them.", "")
        try:
            workspace = await self._offload.open_workspace(path, self.settings.checkpoints_of(name).limits())
        except EngineError as error:
            return Opened(None, sentence(error), path)
        return Opened(workspace, "", workspace.root)

    def container(self, name: str) -> str | None:
        """The kind of container that a workspace's commands run in, ``None`` where they run on the host."""
        backend = self.settings.backend_of(name)
        return backend.kind if backend.is_container else None
