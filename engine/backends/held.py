"""The backends that are in use, one per workspace and choice, kept because a connection or container is behind each."""

import json
import threading
from collections.abc import Mapping

from engine.backends.base import Backend, Site
from engine.backends.registry import create_backend
from engine.model import BackendChoice, Workspace


class Backends:
    """Makes backends when they are first needed; thread-safe.

    Args:
        private: a directory of Takeback's own where backends may keep what they have to.
        environment: of the programs that backends call.
    """

    def __init__(self, private: str, environment: Mapping[str, str]) -> None:
        self._private = private
        self._environment = environment
        self._held: dict[tuple[str, str], Backend] = {}
        self._lock = threading.Lock()

    def get(self, choice: BackendChoice, workspace: Workspace) -> Backend:
        """Return the backend of a workspace; raises ``ToolRefused`` where it cannot be made."""
        key = (workspace.root, json.dumps([choice.kind, dict(choice.options)], sort_keys=True, default=repr))
        with self._lock:
            found = self._held.get(key)
            if found is None:
                site = Site(workspace.root, workspace.hash, self._private, self._environment)
                found = self._held[key] = create_backend(choice.kind, choice.options, site)
            return found

    def close(self) -> None:
        """Have every backend give back what it holds."""
        with self._lock:
            held, self._held = list(self._held.values()), {}
        for backend in held:
            backend.close()
