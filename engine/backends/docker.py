"""Containers of any program that takes docker's command line: ``docker``, ``podman``, ``nerdctl``."""

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

HOME_LABEL: Final = "takeback.home"
"""Which Takeback started a container: the directory where it keeps its own things."""

OWNER_LABEL: Final = "takeback.owner"
"""Which process started it."""

START_S: Final = 120.0
"""How long a container may take to start."""

# It is the first process, so it reaps what commands leave, and ends at once when it is asked to.
_STAY: Final = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done"
_FACTS: Final = f'{{{{.Id}}}} {{{{.State.Running}}}} {{{{.State.Status}}}} {{{{index .Config.Labels "{OWNER_LABEL}"}}}}'
_NEVER_RAN: Final = frozenset({"created", "configured", "initialized"})
_MAKE_DIRECTORY: Final = '[ -d "$1" ] || { mkdir -p -- "$1" && { [ -z "$2" ] || chown -- "$2" "$1"; }; }'


def create_docker(options: Mapping[str, Any], site: Site) -> ContainedBackend:
    """Make the backend.

    Options: ``cli`` (docker unless given), ``image``, ``name``, ``path`` (of the workspace inside; the host's unless
    given), ``mount``, ``network`` (none unless given), ``user``, ``cpus``, ``memory_mb``, ``pids``, ``idle_hours``,
    ``env``, ``args`` (more arguments for ``run``).
    """
    read = Options("docker", options)
    workdir = read.directory("path", site.root)
    runtime = DockerRuntime(read, site, workdir)
    environment, idle_s = read.variables("env"), idle_seconds(read)
    read.finish()
    return ContainedBackend("docker", runtime, site, workdir, environment, idle_s)


class DockerRuntime:
    """See ``Runtime``; a container goes by its id, so that another one of the same name is not taken for it."""

    def __init__(self, read: Options, site: Site, workdir: str) -> None:
        self._cli = read.word("cli") or "docker"
        self.title = os.path.basename(self._cli)
        self.name = container_name("docker", read.text("name"), site)
        self._image = read.word("image")
        self._user = read.word("user")
        self._workdir = workdir
        self._site = site
        self.run_arguments = self._read_run_arguments(read)

    def sweep(self, stop: StopSignal | None) -> None:
        """Remove containers of this home whose process is gone."""
        listed = self._call("ps", "-aq", "--no-trunc", f"--filter=label={HOME_LABEL}={self._site.private}", stop=stop)
        require(listed)
        for container in listed.output.decode("utf-8", "replace").split():
            found = self._inspect(container, stop)
            if not found.exit_code and is_gone(_owner(found)):
                self.remove(container)

    def attach(self, stop: StopSignal | None) -> str | None:
        """Return the id of the container of that name; one of our own that never ran is removed."""
        found = self._inspect(self.name, stop)
        if found.exit_code and _is_missing(found):
            return None
        require(found)
        container, running, status = found.output.decode("utf-8", "replace").split()[:3]
        if running == "true":
            return container
        if status in _NEVER_RAN and _owner(found) == this_owner():
            self.remove(container)
            return None
        raise NotStarted(f"the container {self.name!r} is there but does not run; start it, or remove it")

    def start(self, stop: StopSignal | None) -> str:
        """Start it without a command of its own, and make the workspace's directory in it."""
        self._require_image(stop)
        try:
            return self._start(stop)
        except NotStarted:
            with suppress(NotStarted):
                self._remove_begun()
            raise

    def _start(self, stop: StopSignal | None) -> str:
        labels = [f"--label={HOME_LABEL}={self._site.private}", f"--label={OWNER_LABEL}={this_owner()}"]
        words = ["run", "-d", "--pull=never", f"--name={self.name}", *labels, *self.run_arguments]
        started = self._call(*words, "--entrypoint=/bin/sh", self._image, "-c", _STAY, timeout_s=START_S, stop=stop)
        require(started, "no container could be started")
        container = started.output.decode("utf-8", "replace").split()[-1]
        # Not by --workdir: what that makes belongs to root, whoever commands run as.
        made = self._call(
            *("exec", "--user=0", container, "/bin/sh", "-c", _MAKE_DIRECTORY, "sh", self._workdir, self._user),
            stop=stop,
        )
        require(made, f"{self._workdir} could not be made in the container")
        return container

    def _remove_begun(self) -> None:
        """Remove what a start has made that came to nothing, if it is not somebody else's who was quicker."""
        found = self._inspect(self.name, None, timeout_s=END_S)
        if not found.exit_code and _owner(found) == this_owner():
            self._call("rm", "-f", "-v", self.name, timeout_s=END_S)

    def runs(self, container: str) -> bool:
        """Ask the program."""
        found = self._inspect(container, None)
        return not found.exit_code and b" true " in found.output

    def remove(self, container: str) -> None:
        """Remove it, its volumes without a name too."""
        self._call("rm", "-f", "-v", container)

    def entering(self, container: str) -> list[str]:
        """Return the call of ``exec``."""
        return [self._cli, "exec", "-i", *([f"--user={self._user}"] if self._user else []), container]

    def _require_image(self, stop: StopSignal | None) -> None:
        if not self._image:
            raise NotStarted(f"no container {self.name!r} runs, and no image is configured to start one from")
        found = self._call("image", "inspect", "--format", "{{.Id}}", self._image, stop=stop)
        if found.exit_code and _is_missing(found):
            raise NotStarted(
                f"the image {self._image!r} is not on this machine; fetch it first: {self._cli} pull {self._image}"
            )
        require(found)

    def _read_run_arguments(self, read: Options) -> list[str]:
        """Put what was configured into the words of ``run``; more arguments come last, so they win."""
        more = read.texts("args")
        network = read.word("network") or "none"
        words = [] if any(word.split("=")[0] in {"--network", "--net"} for word in more) else [f"--network={network}"]
        if self._user:
            words.append(f"--user={self._user}")
        if (cpus := read.number("cpus")) is not None:
            words.append(f"--cpus={cpus:g}")
        if (memory_mb := read.number("memory_mb")) is not None:
            words.append(f"--memory={memory_mb:.0f}m")
        if (pids := read.number("pids")) is not None:
            words.append(f"--pids-limit={pids:.0f}")
        if mounted(read, self._site, self._workdir, forbidden=',"\n'):
            words.append(f"--mount=type=bind,source={self._site.root},target={self._workdir}")
        return [*words, *more]

    def _inspect(self, container: str, stop: StopSignal | None, timeout_s: float = CALL_S) -> Executed:
        return self._call("container", "inspect", "--format", _FACTS, container, timeout_s=timeout_s, stop=stop)

    def _call(self, *words: str, timeout_s: float = CALL_S, stop: StopSignal | None = None) -> Executed:
        return call_client([self._cli, *words], self._site.environment, timeout_s=timeout_s, stop=stop)


def _owner(inspected: Executed) -> str:
    """Which process started a container, by its label; empty where there is none."""
    return inspected.output.decode("utf-8", "replace").rstrip("\n").split(" ")[-1]


def _is_missing(done: Executed) -> bool:
    """Whether it failed because what was named is not there, in docker's words or podman's."""
    said = done.errors.lower()
    return any(words in said for words in (b"no such container", b"no such image", b"no such object", b"not known"))
