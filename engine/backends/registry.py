"""Which backends there are, by the name they are configured by, and whose paths are a sandbox's.

Whether a name means a container is known also where nothing here can run it, because checkpoints depend on it. Other
distributions add backends under the entry point group ``takeback.backends``: the name is the kind, the object a factory
that takes the configured options and the ``Site`` and returns a ``Backend``, with an attribute ``is_container``.
"""

import difflib
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Final, Protocol, cast

from engine.backends.base import Backend, Site
from engine.errors import ToolRefused

ENTRY_POINTS: Final = "takeback.backends"
"""The entry point group in which other distributions register backends."""

CONTAINER_KINDS: Final = frozenset({"docker", "singularity", "apptainer", "modal", "daytona", "vercel_sandbox"})
"""Kinds whose paths belong to a sandbox."""

HOST_KINDS: Final = frozenset({"local", "ssh"})
"""Kinds whose paths are the host's."""

_BUILTIN: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "local": ("engine.backends.local", "create_local"),
        "ssh": ("engine.backends.ssh", "SshBackend"),
        "docker": ("engine.backends.docker", "create_docker"),
        "singularity": ("engine.backends.singularity", "create_singularity"),
        "apptainer": ("engine.backends.singularity", "create_apptainer"),
        "modal": ("engine.backends.modal", "create_modal"),
        "daytona": ("engine.backends.daytona", "create_daytona"),
        "vercel_sandbox": ("engine.backends.vercel_sandbox", "create_vercel_sandbox"),
    }
)
"""Module and factory by kind; imported when first used, since most are never needed and starting should be quick."""


class BackendFactory(Protocol):
    """Makes a backend from its configured options; ``is_container`` must be known before that."""

    @property
    def is_container(self) -> bool:
        """Whether the paths of what it makes belong to a sandbox."""
        ...

    def __call__(self, options: Mapping[str, Any], site: Site, /) -> Backend:
        """Make the backend; reaches for nothing outside yet. Raises ``ToolRefused`` for options it cannot use."""
        ...


def known_kinds() -> tuple[str, ...]:
    """Return every name that means something, sorted: ours and those of installed plugins."""
    return tuple(sorted(CONTAINER_KINDS | HOST_KINDS | set(_plugins())))


def is_container(kind: str) -> bool:
    """Whether the paths of a backend belong to a sandbox; raises ``ToolRefused`` for an unknown kind."""
    if kind in CONTAINER_KINDS:
        return True
    if kind in HOST_KINDS:
        return False
    return bool(_load_plugin(kind).is_container)


def create_backend(kind: str, options: Mapping[str, Any], site: Site) -> Backend:
    """Make the backend of a kind; raises ``ToolRefused`` if there is none, naming the nearest kind."""
    builtin = _BUILTIN.get(kind)
    if builtin is not None:
        module, name = builtin
        factory = cast("BackendFactory", getattr(import_module(module), name))
        return factory(options, site)
    return _load_plugin(kind)(options, site)


def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _load_plugin(kind: str) -> BackendFactory:
    point = _plugins().get(kind)
    if point is None:
        raise ToolRefused(f"backend {kind!r}", f"is unknown; {suggestion(kind)}")
    try:
        factory = point.load()
    except Exception as error:
        raise ToolRefused(f"backend {kind!r}", f"{point.value} cannot be loaded: {error}") from error
    if not callable(factory) or not isinstance(getattr(factory, "is_container", None), bool):
        raise ToolRefused(f"backend {kind!r}", f"{point.value} is not a backend factory with a boolean is_container")
    return cast("BackendFactory", factory)


def suggestion(kind: str) -> str:
    """Say which kind was probably meant, and which there are."""
    nearest = difflib.get_close_matches(kind, known_kinds(), n=1, cutoff=0.5)
    known = f"known are {', '.join(known_kinds())}"
    return f"did you mean {nearest[0]!r}? ({known})" if nearest else known
