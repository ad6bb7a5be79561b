"""What the four processes of the soak are told to do, each by a thread that starts it anew whenever it was killed."""

import json
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.cli.exits import Exit
from tests.e2e.program import Program
from tests.soak.town import Town

STOPPED = -signal.SIGKILL


@dataclass
class Tally:
    """What happened; ``failures`` are sentences, and the soak has failed if there is one."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1

    def fail(self, what: str) -> None:
        with self.lock:
            self.failures.append(what)


class Client:
    """One process that may be killed at any moment, and the thread that works with it until it is told to stop."""

    def __init__(self, name: str, town: Town, tally: Tally, seed: int) -> None:
        self.name = name
        self.town = town
        self.tally = tally
        self.random = random.Random(f"{seed} {name}")
        self.stopping = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        self.was_killed = False
        self._thread = threading.Thread(target=self._work, name=name)

    def start(self) -> None:
        self._thread.start()

    def kill(self) -> None:
        """End the process as a power cut would."""
        process = self.process
        if process is not None and process.poll() is None:
            self.was_killed = True
            process.kill()
            self.tally.note(f"{self.name} killed")

    def join(self) -> None:
        self.stopping.set()
        self._thread.join()

    def _work(self) -> None:
        while not self.stopping.is_set():
            self.was_killed = False
            try:
                self.live()
            except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as error:
                if not self.was_killed:
                    self.tally.fail(f"{self.name}: {type(error).__name__}: {error}")
                    return

    def live(self) -> None:
        """Start the process and use it until it is killed or all is over."""
        raise AssertionError("each kind of client has its own life")


class Gateway(Client):
    """A gateway as another program talks to it: turns, restores, lists."""

    def __init__(self, name: str, town: Town, tally: Tally, seed: int) -> None:
        super().__init__(name, town, tally, seed)
        self._chats: set[str] = set()

    def live(self) -> None:
        program = Program(
            self.town.line("chat", "--jsonl", "--chat", self.name),
            cwd=str(self.town.user_home),
            env=self.town.environment,
            log=str(self.town.home / "gateway.log"),
            errors=str(self.town.base / f"{self.name}.errors"),
        )
        self.process = program.process
        # What an earlier life left unfinished is done again, and answered in the chats of that life.
        life = f"{self.name}-{time.monotonic_ns()}"
        entered: set[str] = set()
        left, self._chats = self._chats, set()
        try:
            for chat in left:  # nobody comes back to them; their sessions would keep what they began with
                program.send("/new", chat)
            while not self.stopping.is_set():
                workspace = self.random.choice(self.town.workspaces)
                chat = f"{life}-{workspace}"
                self._chats.add(chat)
                if workspace not in entered:
                    program.ask(f"/workspace {workspace}", chat)
                    entered.add(workspace)
                program.ask(self._wish(), chat)
                self.tally.note("messages answered")
                answer = program.ask("/rollback", chat)
                self.town.acknowledge(workspace, list(zip(answer.ids, answer.entries, strict=True)))
        finally:
            program.process.kill()
            program.close()
            self._chats |= left - {said.get("chat") for said in program.heard if said.get("done")}

    def _wish(self) -> str:
        number = self.random.randrange(10_000)
        return self.random.choice(
            [
                f"/write notes.md\n{number}\n",
                f"/write src/part-{number % 7}.py\nvalue = {number}\n",
                *[f"$ head -c {self.town.noise_bytes} /dev/urandom > noise.bin"] * 5,
                f"$ rm -f noise.bin && echo {number} > notes.md",
                "/rollback 1",
                "/undo",
                "/new",
            ]
        )


class Loop(Client):
    """A command that is run again and again."""

    def __init__(
        self,
        name: str,
        town: Town,
        tally: Tally,
        seed: int,
        arguments: tuple[str, ...],
        heard: Callable[[dict[str, object]], None],
    ) -> None:
        super().__init__(name, town, tally, seed)
        self._arguments = arguments
        self._heard = heard

    def live(self) -> None:
        process = subprocess.Popen(
            self.town.line(*self._arguments),
            cwd=self.town.user_home,
            env=self.town.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )
        self.process = process
        out, errors = process.communicate()
        if process.returncode == STOPPED:
            return
        if process.returncode not in (Exit.OK, Exit.BUSY):
            raise AssertionError(f"exit code {process.returncode}: {errors.decode()[-2000:]}")
        self.tally.note(f"{self.name} {'busy' if process.returncode == Exit.BUSY else 'done'}")
        if process.returncode == Exit.OK:
            self._heard(json.loads(out))


def make_clients(town: Town, tally: Tally, seed: int) -> list[Client]:
    """Return the four: two gateways, a prune and a status in a loop."""
    return [
        Gateway("gateway-1", town, tally, seed),
        Gateway("gateway-2", town, tally, seed),
        Loop("prune", town, tally, seed, ("prune", "--json"), town.note_prune),
        Loop("status", town, tally, seed, ("checkpoints", "status", "--json"), lambda _status: None),
    ]
