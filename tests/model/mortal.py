"""A gateway in a process of its own that answers one message and is killed at one of its steps.

Run as a program it reads one job a line and answers each with the exit code. Every job runs in a process forked from
this one, so that a start costs little, and SIGKILL is the real one. Steps are transactions, replies, runs of git and
changes of workspace files.
"""

import os
import signal
from collections.abc import Sequence

import anyio

from adapters.contract import Inbound, Outbound, Place, Receive
from engine.api import Engine
from gateway.access.admission import OWNED
from gateway.agents.direct import DirectAgent
from gateway.config.settings import Settings
from gateway.conversations import Wishes
from gateway.service import Service, serve
from gateway.workspaces import Workspaces
from tests.gateway.commands.kit import COMMAND_ENV, PLATFORM
from tests.gateway.mortal import answer_jobs, count_transactions


class Steps:
    """Counts the steps of a run, and ends the process by SIGKILL at one of them."""

    def __init__(self, kill_at: int, trace: str) -> None:
        self.kill_at = kill_at
        self.count = 0
        self.trace = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def __call__(self, name: str) -> None:
        self.count += 1
        os.write(self.trace, f"{name}\n".encode())
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    after = __call__


class OneMessage:
    """A platform with one message to give, sent to nobody."""

    name = PLATFORM

    def __init__(self, message: Inbound, step: Steps) -> None:
        self._message = message
        self._step = step

    async def run(self, receive: Receive) -> None:
        await receive(self._message)
        self._step("stored")

    async def send(self, message: Outbound) -> None:
        self._step(f"send {message.plain_text!a}")

    async def progress(self, place: Place, text: str) -> None:
        pass

    async def finished(self, place: Place, event_id: str) -> None:  # noqa: ARG002 - the contract's arguments
        self._step("finished")


def run_gateway(job: dict) -> None:
    """Run a gateway until it has dealt with its message, or is killed."""
    step = Steps(job["kill_at"], job["trace"])
    count_transactions(step)

    def before_git(arguments: Sequence[str]) -> None:
        step(f"git {arguments[0]}")

    def file_fault(operation: str, path: str) -> None:
        step(f"{operation} {path!a}")

    home = job["home"]
    settings = Settings.model_validate(job["settings"])
    message = Inbound(Place(PLATFORM, job["chat"]), "ann", job["event_id"], job["text"])
    service = Service(
        home=home,
        engine=Engine(
            os.path.join(home, "checkpoints"),
            user_home=job["user_home"],
            command_env=COMMAND_ENV,
            search_path=os.environ["PATH"],
            before_git=before_git,
            file_fault=file_fault,
        ),
        adapters=(OneMessage(message, step),),
        rules={PLATFORM: OWNED},
        agents={"direct": DirectAgent()},
        open_workspaces=lambda offload: Workspaces(settings, offload, settings.default_workspace or ""),
        wishes=Wishes(),
        signals=(),
        drains=lambda: True,
    )
    anyio.run(serve, service)


if __name__ == "__main__":
    answer_jobs(run_gateway)
