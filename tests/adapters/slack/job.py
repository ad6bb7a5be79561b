"""A whole job over Slack, played once: the real program, one person, and an operator at the machine.

A person is admitted by a code, has the agent work in a thread, looks at a list and a diff, and takes things back by a
button and by a command; the program is killed in the middle of a turn and started again.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from tests.adapters.slack import local_slack
from tests.adapters.slack.local_slack import ANN, APP_TOKEN, BOT, BOT_TOKEN, CHANNEL, LOOK_S, SECRET, LocalSlack, words

ROOT = Path(__file__).resolve().parents[3]
NAME = f"<@{BOT}>"
CONFIG = """\
checkpoints: {{enabled: true}}
default_workspace: app
workspaces:
  app: {{path: {app}}}
slack: {{api_base: "{base}", mode: {mode}, http_port: {port}}}
"""


@dataclass
class Job:
    """The machine, and what the tests want to know of the play afterwards."""

    base: Path
    mode: str
    seen: dict[str, Any] = field(default_factory=dict)
    log: str = ""
    port: int = 0

    def __post_init__(self) -> None:
        self.app = self.base / "code" / "app"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]

    @property
    def request_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/slack/events" if self.mode == "http" else ""

    @property
    def environment(self) -> dict[str, str]:
        secret = {"SIGNING_SECRET": SECRET} if self.mode == "http" else {"APP_TOKEN": APP_TOKEN}
        given = {"BOT_TOKEN": BOT_TOKEN, **secret}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.base),
            "PYTHONPATH": str(ROOT),
            "LANG": "C.UTF-8",
            **{f"TAKEBACK_SLACK__{name}": value for name, value in given.items()},
        }

    def prepare(self, slack: LocalSlack) -> None:
        (self.app / "docs").mkdir(parents=True)
        (self.app / "greet.py").write_text('def greet(name):\n    return f"Hello, {name}!"\n')
        (self.app / "docs" / "guide.md").write_text("guide\n")
        (self.base / ".takeback").mkdir()
        config = CONFIG.format(app=self.app, base=slack.api_base, mode=self.mode, port=self.port)
        (self.base / ".takeback" / "config.yaml").write_text(config)

    def files(self) -> dict[str, str]:
        found = [path for path in self.app.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.app)): path.read_text() for path in sorted(found)}

    async def operate(self, *arguments: str) -> None:
        """Let the operator run a command."""
        await anyio.run_process([sys.executable, "-m", "gateway", *arguments], env=self.environment, cwd=self.base)

    @asynccontextmanager
    async def running(self, slack: LocalSlack) -> AsyncIterator[anyio.abc.Process]:
        """Run the program until the block ends, which stops it if it still runs."""
        errors = self.base / "errors"
        before = len(await slack.log())
        with errors.open("ab") as stderr:
            process = await anyio.open_process(
                [sys.executable, "-m", "gateway", "run"], env=self.environment, cwd=self.base,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
            )  # fmt: skip
        try:
            await self._connected(slack, before)
            yield process
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                with anyio.fail_after(60):
                    self.seen["exit code"] = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
            await process.aclose()
            self.log = errors.read_text()

    async def _connected(self, slack: LocalSlack, before: int) -> None:
        """Wait until what people do is delivered: this Slack keeps nothing for those who are away."""
        with anyio.fail_after(60):
            while True:
                if await (self._listens() if self.mode == "http" else self._has_socket(slack, before)):
                    return
                await anyio.sleep(LOOK_S)

    async def _listens(self) -> bool:
        try:
            stream = await anyio.connect_tcp("127.0.0.1", self.port)
        except OSError:
            return False
        await stream.aclose()
        return True

    async def _has_socket(self, slack: LocalSlack, before: int) -> bool:
        return any("socket connected" in entry["summary"] for entry in (await slack.log())[before:])


async def play(job: Job) -> None:
    """The job, from the first word to the last."""
    async with local_slack.running(job.base, request_url=job.request_url) as slack:
        await anyio.to_thread.run_sync(job.prepare, slack)
        async with job.running(slack) as first:
            dm = (await slack.say("hello", channel=ANN))["channel"]
            refusal = await slack.until("Your code", channel=dm)
            await job.operate("pair", words(refusal).split("minutes: ")[1].split()[0])
            job.seen["welcome"] = await slack.until("You are admitted", channel=dm)
            await slack.command("/whoami")
            job.seen["slash"] = await slack.until(ANN)
            thread = (await slack.say(f"{NAME} $ sed -i s/Hello/Goodbye/ greet.py && rm -r docs"))["ts"]
            job.seen["changed"] = await slack.until("2 files", thread=thread)
            # In the thread nobody has to name the app any more.
            await slack.say("$ seq 1 5000 > numbers.txt", thread=thread)
            await slack.until("+5000", thread=thread)
            await slack.say("!rollback", thread=thread)
            listed = await slack.until("Checkpoints for", thread=thread)
            await slack.press("Diff 2", listed)
            job.seen["diff"] = await slack.until("Changes since", thread=thread)
            await slack.say("!nice work", thread=thread)
            job.seen["changed files"] = await anyio.to_thread.run_sync(job.files)
            await slack.say("$ sleep 600; touch never", thread=thread)
            await slack.until("sleep 600", thread=thread)
            first.kill()
            job.seen["killed"] = await first.wait()
        async with job.running(slack):
            job.seen["after the kill"] = await slack.until("Takeback was ended during this turn", thread=thread)
            await slack.press("Restore 2", listed)
            job.seen["restored"] = await slack.until("Restored to checkpoint", thread=thread)
            job.seen["restored files"] = await anyio.to_thread.run_sync(job.files)
            await slack.say(f"{NAME} redo", thread=thread)
            job.seen["redone"] = await slack.until("Brought back", thread=thread)
            job.seen["redone files"] = await anyio.to_thread.run_sync(job.files)
            await slack.open_home()
            job.seen["page"] = await slack.until_published()
        job.seen["in the thread"] = await slack.written(thread=thread)
        job.seen["in the channel"] = await slack.written(CHANNEL)
        job.seen["log"] = await slack.log()
