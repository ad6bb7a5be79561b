"""A gateway that can be killed at any step, for the tests that do so.

Run as a program it reads one job a line and answers each with how it ended. Every job runs in a process forked from
this one, which has everything imported and no threads: a start costs little, and SIGKILL is the real one.

The platform is two files: what people wrote, and the ids it has got acknowledgements for. It delivers what is not
acknowledged again, as platforms do.
"""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio

from adapters.contract import Inbound, Outbound, Place, Receive
from engine.api import Engine
from engine.model import Workspace
from gateway.access.admission import OWNED
from gateway.agents.direct import DirectAgent
from gateway.config.settings import Settings
from gateway.conversations import Wishes
from gateway.offload import Offload
from gateway.service import Service, serve
from gateway.state.database import Database, Transaction
from gateway.workspaces import Workspaces
from tests.gateway.agent_kit import AGENT, KIND, Scripted, runs_what_it_is_told

PLACE = Place("post", "here")
T = TypeVar("T")


class Steps:
    """Counts the steps of a run, and ends the process by SIGKILL at one of them.

    A step is a moment that leaves something else behind than the one before: something was committed, sent,
    acknowledged, or done to files. Of moments with nothing in between, whoever starts next finds the same.
    """

    def __init__(self, kill_at: int | None, trace: str) -> None:
        self.kill_at = kill_at
        self.count = 0
        self.changed = True
        self.trace = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def __call__(self, name: str) -> None:
        """Be at a moment."""
        if not self.changed:
            return
        self.changed = False
        self.count += 1
        os.write(self.trace, f"{name}\n".encode())
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def after(self, name: str) -> None:
        """Be at the moment after something was left behind."""
        self.changed = True
        self(name)


class PostOffice:
    """A platform made of files in ``directory``; ``updates`` are the texts that a person wrote, in order.

    A person answers a question once something has been said to the message before.
    """

    name = PLACE.adapter

    def __init__(self, directory: str, updates: list[str], step: Steps) -> None:
        self.acknowledged = os.path.join(directory, "acknowledged")
        self.delivered = os.path.join(directory, "delivered")
        self.updates = updates
        self.step = step
        self.sent = anyio.Event()

    async def run(self, receive: Receive) -> None:
        known = read_lines(self.acknowledged)
        for number, text in enumerate(self.updates):
            event_id = f"e{number}"
            if event_id not in known:
                if text.startswith("/approve"):
                    await self.said_to(f"e{number - 1}")
                await receive(Inbound(PLACE, "u1", event_id, text))
                self.step(f"stored {event_id}")
                append_line(self.acknowledged, event_id)
                self.step.after(f"acknowledged {event_id}")

    async def said_to(self, event_id: str) -> None:
        while not any(json.loads(line)[0] == event_id for line in read_lines(self.delivered)):
            await self.sent.wait()

    async def send(self, message: Outbound) -> None:
        self.step("send")
        append_line(self.delivered, json.dumps([message.reply_to, message.plain_text]))
        self.step.after("sent")
        self.sent.set()
        self.sent = anyio.Event()

    async def progress(self, place: Place, text: str) -> None:
        pass

    async def finished(self, place: Place, event_id: str) -> None:  # noqa: ARG002 - the contract's arguments
        self.step(f"finished {event_id}")


def append_line(path: str, line: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def read_lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def count_transactions(step: Steps) -> None:
    """Be at a moment of each transaction's beginning, of the one before its commit, and of the one after."""
    original = Database.transaction

    @asynccontextmanager
    async def transaction(self: Database, *, durable: bool = True) -> AsyncIterator[Transaction]:
        step("begin")
        async with original(self, durable=durable) as tx:
            yield tx
            step("commit")
        step.after("committed")

    Database.transaction = transaction  # type: ignore[method-assign]


def count_writes(step: Steps) -> None:
    """Be at a moment after each call of the engine that may leave something behind."""
    original = Offload._write

    async def write(self: Offload, workspace: Workspace, work: Callable[[], T]) -> T:
        try:
            return await original(self, workspace, work)
        finally:
            step.after("written")

    Offload._write = write  # type: ignore[method-assign]


def run_gateway(job: dict) -> None:
    """Run a gateway until it has dealt with everything, or is killed."""
    directory = job["directory"]
    step = Steps(job["kill_at"], os.path.join(directory, "trace"))
    count_transactions(step)
    count_writes(step)
    workspace = os.path.join(directory, "project")
    home = os.path.join(directory, "home")
    settings = Settings.model_validate({"agent": AGENT} if job["asks"] else {})
    settings = settings.with_workspace("project", workspace).with_checkpoints(on=job["checkpoints"])
    service = Service(
        home=home,
        engine=Engine(
            os.path.join(home, "checkpoints"),
            user_home=home,
            lock_path=os.path.join(home, ".checkpoints.lock"),
            search_path=os.environ["PATH"],
            command_env={"PATH": os.environ["PATH"]},
            # What the engine noted before it touches a file is left behind by then.
            file_fault=lambda operation, path: step.after(f"about to {operation} {path}"),
        ),
        adapters=(PostOffice(directory, job["updates"], step),),
        rules={PLACE.adapter: OWNED},
        agents={"direct": DirectAgent(), KIND: Scripted(runs_what_it_is_told)},
        open_workspaces=lambda offload: Workspaces(settings, offload, "project"),
        wishes=Wishes(),
        signals=(),
        drains=lambda: True,
    )
    anyio.run(serve, service)


def answer_jobs(run: Callable[[dict[str, Any]], None]) -> None:
    """Run each job that stands on a line of the input in a forked process, and answer with how it ended."""
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            run(json.loads(line))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - the answer to the job


if __name__ == "__main__":
    answer_jobs(run_gateway)
