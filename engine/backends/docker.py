"""Commands in a container of any program that takes docker's command line: ``docker``, ``podman``, ``nerdctl``.

One container per workspace, started when first needed and removed when the engine is closed; what was left behind by a
process that died is removed before the next one is started. A container that somebody else started is used as it is.
Everything goes through ``exec``; ``commands`` says what the program is asked.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from engine.backends.base import Executed, ProcessResult, Site, StopSignal
from engine.backends.client import ClientChannel, call_client, complaint, shell_arguments
from engine.backends.container import Idleness, container_name, inside, is_gone, this_owner
from engine.backends.conversation import Hearing, NotStarted, Order, language, run_elsewhere
from engine.backends.options import Options
from engine.backends.wrapper import Verdict, killing
from engine.errors import ToolRefused

HOME_LABEL: Final = "takeback.home"
"""Which Takeback started a container: the directory where it keeps its own things."""

OWNER_LABEL: Final = "takeback.owner"
"""Which process started it."""

START_S: Final = 120.0
"""How long a container may take to start."""

CALL_S: Final = 60.0
"""How long any other call may take: reading and writing files among them."""

# It is the first process, so it reaps what commands leave, and ends at once when it is asked to.
_STAY: Final = "trap 'exit 0' TERM INT; while :; do sleep 86400 & wait $!; done"
_HOUR_S = 3600.0
_FACTS: Final = '{{.Id}} {{.State.Running}} {{index .Config.Labels "takeback.owner"}}'


class DockerBackend:
    """Runs commands and reaches files in a container; one instance per workspace.

    Options: ``cli`` (docker unless given), ``image``, ``name``, ``path`` (of the workspace inside; the host's unless
    given), ``mount``, ``network`` (none unless given), ``user``, ``cpus``, ``memory_mb``, ``pids``, ``idle_hours``,
    ``env``, ``args`` (more arguments for ``run``).
    """

    kind = "docker"
    is_container = True

    def __init__(self, options: Mapping[str, Any], site: Site) -> None:
        read = Options(self.kind, options)
        self._cli = read.word("cli") or "docker"
        self._image = read.word("image")
        self._name = container_name(self.kind, read.text("name"), site)
        self.workdir = read.directory("path", site.root)
        self._user = read.word("user")
        self._env = read.variables("env")
        self._run_arguments = _run_arguments(read, site, self.workdir, self._user)
        idle_hours = read.number("idle_hours")
        read.finish()
        self._site = site
        self._idle = Idleness(None if idle_hours is None else idle_hours * _HOUR_S, self.close)
        self._lock = threading.Lock()
        self._id: str | None = None
        self._ours = False

    def run(
        self,
        command: str,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float | None,
        on_output: Callable[[bytes], None],
        stop: StopSignal,
        *,
        keep_background: bool = False,
    ) -> ProcessResult:
        """Run a command in the container; see ``Backend.run``."""
        order = Order(command, inside(self._site, self.workdir, cwd), {**language(env), **self._env}, keep_background)
        with self._idle.in_use():
            try:
                return run_elsewhere(self._open_channel, order, Hearing(on_output), stop, timeout_s)
            except NotStarted as error:
                raise self._explained(error.reason) from error

    def execute(self, arguments: Sequence[str], stdin: bytes = b"") -> Executed:
        """Run a short program in the container; see ``Sandbox.execute``."""
        with self._idle.in_use():
            try:
                done = self._call(*self._exec(self._ensure()), *arguments, stdin=stdin)
            except NotStarted as error:
                raise self._explained(error.reason) from error
            if done.exit_code and self._is_lost():
                raise self._explained(complaint(done))
            return done

    def close(self) -> None:
        """Remove the container, if this started it."""
        self._idle.cancel()
        with self._lock:
            found, self._id = self._id, None
            if found is not None and self._ours:
                with suppress(NotStarted):
                    self._call("rm", "-f", "-v", found)

    def _open_channel(self, text: str, mark: str) -> ClientChannel:
        prefix = [self._cli, *self._exec(self._ensure())]

        def kill(verdict: Verdict) -> None:
            if verdict.group is not None:
                with suppress(NotStarted):
                    self._call(*prefix[1:], "/bin/sh", "-c", killing(verdict.group, mark))

        return ClientChannel([*prefix, *shell_arguments()], self._site.environment, text, kill)

    def _exec(self, container: str) -> list[str]:
        return ["exec", "-i", *(["--user", self._user] if self._user else []), container]

    def _ensure(self) -> str:
        """Return the id of a running container, started if there is none; raises ``NotStarted``, ``ToolRefused``."""
        with self._lock:
            if self._id is None:
                self._sweep()
                self._id = self._attach() or self._start()
            return self._id

    def _attach(self) -> str | None:
        """Take the container of that name, if there is one that runs."""
        found = self._call("container", "inspect", "--format", _FACTS, self._name)
        if found.exit_code:
            if _is_missing(found):
                return None
            raise NotStarted(complaint(found))
        number, running, _ = (found.output.decode("utf-8", "replace").strip() + "  ").split(" ", 2)
        if running != "true":
            raise NotStarted(f"the container {self._name!r} is there but does not run; start it, or remove it")
        self._ours = False
        return number

    def _start(self) -> str:
        if not self._image:
            raise NotStarted(f"no container {self._name!r} runs, and no image is configured to start one from")
        image = self._call("image", "inspect", "--format", "{{.Id}}", self._image)
        if image.exit_code:
            if _is_missing(image):
                raise NotStarted(
                    f"the image {self._image!r} is not on this machine; fetch it first: {self._cli} pull {self._image}"
                )
            raise NotStarted(complaint(image))
        labels = [f"--label={HOME_LABEL}={self._site.private}", f"--label={OWNER_LABEL}={this_owner()}"]
        started = self._call(
            *("run", "-d", "--pull=never", f"--name={self._name}", *labels, *self._run_arguments),
            *("--entrypoint=/bin/sh", self._image, "-c", _STAY),
            timeout_s=START_S,
        )
        if started.exit_code:
            self._call("rm", "-f", "-v", self._name)  # one that was made but could not be started
            raise NotStarted(f"no container could be started: {complaint(started)}")
        self._ours = True
        number = started.output.decode("utf-8", "replace").split()[-1]
        # Not by --workdir: what that makes belongs to root, whoever commands run as.
        made = self._call("exec", "--user=0", number, "/bin/sh", "-c", _MAKE_DIRECTORY, "sh", self.workdir, self._user)
        if made.exit_code:
            self._call("rm", "-f", "-v", number)
            raise NotStarted(f"{self.workdir} could not be made in the container: {complaint(made)}")
        return number

    def _sweep(self) -> None:
        """Remove containers of this home whose process is gone."""
        listed = self._call("ps", "-aq", "--no-trunc", f"--filter=label={HOME_LABEL}={self._site.private}")
        if listed.exit_code:
            raise NotStarted(complaint(listed))
        for number in listed.output.decode("utf-8", "replace").split():
            found = self._call("container", "inspect", "--format", _FACTS, number)
            owner = found.output.decode("utf-8", "replace").strip().split(" ")[-1]
            if not found.exit_code and is_gone(owner):
                self._call("rm", "-f", "-v", number)

    def _is_lost(self) -> bool:
        """Whether the container that was used does not run any more; it is forgotten then."""
        with self._lock:
            if self._id is None:
                return False
            found = self._call("container", "inspect", "--format", _FACTS, self._id)
            if not found.exit_code and b" true " in found.output:
                return False
            self._id = None
            return True

    def _explained(self, reason: str) -> ToolRefused:
        lost = False
        with suppress(NotStarted):
            lost = self._is_lost()
        if lost:
            reason = (
                f"the container {self._name!r} is gone or was stopped meanwhile, with every file in it that no mount "
                "holds; the next command starts another"
            )
        return ToolRefused(f"container ({os.path.basename(self._cli)})", f"{reason}. Nothing ran")

    def _call(self, *arguments: str, stdin: bytes = b"", timeout_s: float = CALL_S) -> Executed:
        return call_client([self._cli, *arguments], self._site.environment, stdin=stdin, timeout_s=timeout_s)


_MAKE_DIRECTORY: Final = '[ -d "$1" ] || { mkdir -p -- "$1" && { [ -z "$2" ] || chown -- "$2" "$1"; }; }'


def _run_arguments(read: Options, site: Site, workdir: str, user: str) -> list[str]:
    """Put what was configured into the words of ``run``; more arguments come last, so they win."""
    more = read.texts("args")
    network = read.word("network") or "none"
    words = [] if any(word.split("=")[0] in {"--network", "--net"} for word in more) else [f"--network={network}"]
    if user:
        words.append(f"--user={user}")
    if (cpus := read.number("cpus")) is not None:
        words.append(f"--cpus={cpus:g}")
    if (memory_mb := read.number("memory_mb")) is not None:
        words.append(f"--memory={memory_mb:.0f}m")
    if (pids := read.number("pids")) is not None:
        words.append(f"--pids-limit={pids:.0f}")
    if read.switch("mount"):
        if any(mark in path for path in (site.root, workdir) for mark in ',"\n'):
            raise read.refusal("mount", "is not possible: the path holds a comma, a quote or a line break")
        words.append(f"--mount=type=bind,source={site.root},target={workdir}")
    return [*words, *more]


def _is_missing(done: Executed) -> bool:
    """Whether it failed because what was named is not there, in docker's words or podman's."""
    said = done.errors.lower()
    return any(words in said for words in (b"no such container", b"no such image", b"no such object", b"not known"))
