"""Containers of Singularity and Apptainer, which take the same command line.

A workspace's container is an *instance*: started in the background, entered by name. It carries no labels, so whose it
is stands in a note of our own beside.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from engine.backends.base import Executed, Site, StopSignal
from engine.backends.client import call_client
from engine.backends.contained import CALL_S, END_S, ContainedBackend, require
from engine.backends.container import container_name, idle_seconds, is_gone, mounted, this_owner
from engine.backends.conversation import NotStarted
from engine.backends.options import Options
from engine.backends.waiting import refuse_stopped

START_S: Final = 120.0
"""How long an instance may take to start."""

_MAKE_DIRECTORY: Final = 'mkdir -p -- "$1"'


def create_singularity(options: Mapping[str, Any], site: Site) -> ContainedBackend:
    """Make the backend that calls ``singularity``; see ``create_apptainer``."""
    return _create("singularity", options, site)


def create_apptainer(options: Mapping[str, Any], site: Site) -> ContainedBackend:
    """Make the backend that calls ``apptainer``.

    Options: ``cli``, ``image`` (a file or directory of this machine), ``name``, ``path`` (of the workspace inside; the
    host's unless given), ``mount``, ``network`` (none unless given; ``host`` for the host's), ``cpus``, ``memory_mb``,
    ``pids``, ``idle_hours``, ``env``, ``args`` (more arguments for ``instance start``).
    """
    return _create("apptainer", options, site)


def _create(kind: str, options: Mapping[str, Any], site: Site) -> ContainedBackend:
    read = Options(kind, options)
    workdir = read.directory("path", site.root)
    runtime = SingularityRuntime(kind, read, site, workdir)
    environment, idle_s = read.variables("env"), idle_seconds(read)
    read.finish()
    return ContainedBackend(kind, runtime, site, workdir, environment, idle_s)


class SingularityRuntime:
    """See ``Runtime``; an instance goes by its name."""

    def __init__(self, kind: str, read: Options, site: Site, workdir: str) -> None:
        self._cli = read.word("cli") or kind
        self.title = os.path.basename(self._cli)
        self.name = container_name(kind, read.text("name"), site)
        self._image = read.word("image")
        self._workdir = workdir
        self._site = site
        self._notes = os.path.join(site.private, kind)
        self.start_arguments = self._read_start_arguments(read)

    def sweep(self, stop: StopSignal | None) -> None:
        """Stop the instances whose process is gone, by the notes of this home."""
        with suppress(FileNotFoundError):
            for name in os.listdir(self._notes):
                owner = self._owner(name)
                if owner is not None and is_gone(owner):
                    refuse_stopped(stop)
                    self.remove(name)

    def attach(self, stop: StopSignal | None) -> str | None:
        """Return the name if an instance goes by it."""
        return self.name if self._runs(self.name, stop) else None

    def start(self, stop: StopSignal | None) -> str:
        """Start an instance in which the host's files are not, and make the workspace's directory in it."""
        if not self._image:
            raise NotStarted(f"no instance {self.name!r} runs, and no image is configured to start one from")
        if not os.path.exists(self._image):
            raise NotStarted(
                f"the image {self._image!r} is not on this machine; build it first: "
                f"{self.title} build image.sif docker://… and name that file"
            )
        # Noted first: an instance without a note would be nobody's.
        self._note()
        words = ["instance", "start", *self.start_arguments, self._image, self.name]
        try:
            started = self._call(*words, timeout_s=START_S, stop=stop)
        except NotStarted:
            self._remove_begun()
            raise
        if started.exit_code:
            self._forget(self.name)
            require(started, "no instance could be started")
        make = [*self.entering(self.name)[1:], "/bin/sh", "-c", _MAKE_DIRECTORY, "sh", self._workdir]
        try:
            require(self._call(*make, stop=stop), f"{self._workdir} could not be made in the container")
        except NotStarted:
            self._remove_begun()
            raise
        return self.name

    def _remove_begun(self) -> None:
        """Stop what a start has made that came to nothing; what will not be stopped keeps its note, for the sweep."""
        with suppress(NotStarted):
            self._call("instance", "stop", self.name, timeout_s=END_S)
            self._forget(self.name)

    def runs(self, container: str) -> bool:
        """Look it up in the list of instances."""
        return self._runs(container, None)

    def _runs(self, container: str, stop: StopSignal | None) -> bool:
        listed = self._call("instance", "list", "--json", stop=stop)
        require(listed)
        try:
            instances = json.loads(listed.output)["instances"]
            return any(instance["instance"] == container for instance in instances)
        except (ValueError, KeyError, TypeError):
            raise NotStarted(f"{self.title} gave no list of instances that could be read") from None

    def remove(self, container: str) -> None:
        """Stop it; what is in it is gone then."""
        self._call("instance", "stop", container)
        self._forget(container)

    def entering(self, container: str) -> list[str]:
        """Return the call of ``exec``; without --cleanenv the environment of the program itself would go along."""
        return [self._cli, "exec", "--cleanenv", "--pwd=/", f"instance://{container}"]

    def _read_start_arguments(self, read: Options) -> list[str]:
        """Put what was configured into the words of ``instance start``; more arguments come last."""
        # The image itself is read-only; what is written goes to memory and is gone with the instance.
        words = ["--containall", "--writable-tmpfs"]
        network = read.word("network") or "none"
        if network != "host":
            words += ["--net", f"--network={network}"]
        if (cpus := read.number("cpus")) is not None:
            words.append(f"--cpus={cpus:g}")
        if (memory_mb := read.number("memory_mb")) is not None:
            words.append(f"--memory={memory_mb:.0f}M")
        if (pids := read.number("pids")) is not None:
            words.append(f"--pids-limit={pids:.0f}")
        if mounted(read, self._site, self._workdir, forbidden=',:"\n'):
            words.append(f"--bind={self._site.root}:{self._workdir}")
        return [*words, *read.texts("args")]

    def _note(self) -> None:
        os.makedirs(self._notes, mode=0o700, exist_ok=True)
        with open(os.path.join(self._notes, self.name), "w", encoding="ascii") as file:
            file.write(this_owner())

    def _owner(self, name: str) -> str | None:
        with suppress(OSError, UnicodeDecodeError), open(os.path.join(self._notes, name), encoding="ascii") as file:
            return file.read()
        return None

    def _forget(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.remove(os.path.join(self._notes, name))

    def _call(self, *words: str, timeout_s: float = CALL_S, stop: StopSignal | None = None) -> Executed:
        return call_client([self._cli, *words], self._site.environment, timeout_s=timeout_s, stop=stop)
