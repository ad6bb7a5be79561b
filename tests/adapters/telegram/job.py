"""A whole job over Telegram, played once: the real program, one person, and an operator at the machine.

A person is admitted by a code, has the agent work, looks at lists and diffs, and takes things back by buttons. The
store is pruned meanwhile, and the program is killed in the middle of a turn and started again.
"""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from tests.adapters.telegram.bot_api import TOKEN, BotApi

ROOT = Path(__file__).resolve().parents[3]
ANN = 42
CONFIG = """\
checkpoints: {{enabled: true, min_interval_hours: 0}}
default_workspace: app
workspaces:
  app: {{path: {app}}}
telegram: {{api_base: "{base}"}}
"""


@dataclass
class Job:
    """The machine, the platform, and what the tests want to know of the play afterwards."""

    base: Path
    api: BotApi = field(default_factory=BotApi)
    seen: dict[str, Any] = field(default_factory=dict)
    log: str = ""

    def __post_init__(self) -> None:
        self.app = self.base / "code" / "app"
        self.ann = self.api.world.person(ANN, "You")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.base),
            "PYTHONPATH": str(ROOT),
            "LANG": "C.UTF-8",
            "TAKEBACK_TELEGRAM__TOKEN": TOKEN,
        }

    def prepare(self) -> None:
        (self.app / "docs").mkdir(parents=True)
        (self.app / "greet.py").write_text('def greet(name):\n    return f"Hello, {name}!"\n')
        (self.app / "notes.md").write_text("# Notes\n")
        (self.app / "docs" / "guide.md").write_text("guide\n")
        (self.base / ".takeback").mkdir()
        config = CONFIG.format(app=self.app, base=self.api.base)
        (self.base / ".takeback" / "config.yaml").write_text(config)

    def files(self) -> dict[str, str]:
        found = [path for path in self.app.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.app)): path.read_text() for path in sorted(found)}

    async def operate(self, *arguments: str, unseen: bool = False) -> str:
        """Let the operator run a command, which is part of the story unless nobody sees it; what it says."""
        event: dict[str, Any] = {"kind": "command", "text": " ".join(arguments), "said": ""}
        if not unseen:
            self.api.world.story.append(event)
        command = [sys.executable, "-m", "gateway", *arguments]
        done = await anyio.run_process(command, env=self.environment, cwd=self.base, stderr=subprocess.STDOUT)
        event["said"] = done.stdout.decode()
        return str(event["said"])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[anyio.abc.Process]:
        """Run the program until the block ends, which stops it if it still runs."""
        command = [sys.executable, "-m", "gateway", "run"]
        errors = self.base / "errors"
        with errors.open("ab") as stderr:
            process = await anyio.open_process(
                command, env=self.environment, cwd=self.base, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=stderr,
            )  # fmt: skip
        try:
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

    async def ask(self, text: str) -> str:
        """Let the person write, and wait for what comes of it."""
        count = len(self.api.world.shown(ANN))
        self.api.world.say(self.ann, text)
        return await self.answer(count)

    async def press(self, label: str) -> str:
        """Let the person press a button, and wait for what comes of it."""
        count = len(self.api.world.shown(ANN))
        query = self.api.world.press(self.ann, label)
        await self.api.until(lambda: query in self.api.world.answers)
        return await self.answer(count)

    async def answer(self, count: int) -> str:
        texts = await self.api.until(lambda: self.api.world.texts(ANN)[count:])
        return str(texts[-1])


async def play(job: Job) -> None:
    """The job, from the first word to the last."""
    async with job.api.serve():
        await anyio.to_thread.run_sync(job.prepare)
        async with job.running() as first:
            refusal = await job.ask("hello")
            code = refusal.split("minutes: ")[1].split()[0]
            count = len(job.api.world.shown(ANN))
            await job.operate("pair", code)
            job.seen["welcome"] = await job.answer(count)
            await job.ask("$ sed -i s/Hello/Goodbye/ greet.py && rm -r docs")
            await job.ask("$ seq 1 5000 > numbers.txt")
            async with anyio.create_task_group() as beside:
                beside.start_soon(partial(job.operate, "prune", "--yes", unseen=True))
                job.seen["list"] = await job.ask("/rollback")
                job.seen["diff"] = await job.press("Diff 2")
            job.seen["changed"] = await anyio.to_thread.run_sync(job.files)
            job.api.world.say(job.ann, "$ sleep 600; touch never")
            await job.api.until(lambda: ANN in job.api.world.drafts)
            first.kill()
            job.seen["killed"] = await first.wait()
        count = len(job.api.world.shown(ANN))
        job.api.world.say(job.ann, "/checkpoints")
        async with job.running():
            await job.api.until(lambda: len(job.api.world.shown(ANN)) >= count + 2)
            job.seen["after the kill"] = job.api.world.texts(ANN)[count:]
            job.seen["restored"] = await job.press("Restore 2")
            job.seen["restored files"] = await anyio.to_thread.run_sync(job.files)
            job.seen["redone"] = await job.ask("/redo")
            job.seen["redone files"] = await anyio.to_thread.run_sync(job.files)


def transcript(job: Job) -> str:
    """What the person saw, and what the operator typed, as text."""
    lines: list[str] = []
    for event in job.api.world.story:
        match event["kind"]:
            case "command":
                lines += [f"(at the machine) $ gateway {event['text']}", *_indented(event["said"])]
            case "answer":
                lines += [f"  ({event['text']})"] if event["text"] else []
            case _ if event.get("who"):
                lines.append(f"{event['who']}: {event['text']}")
            case _:
                lines += _shown(event["event"])
    return "\n".join(lines) + "\n"


def _shown(message: dict[str, Any]) -> list[str]:
    text = message.get("text", message.get("caption", ""))
    lines = _indented(text)
    if "document" in message:
        lines.append(f"  📎 {message['document']['file_name']}")
    rows = message.get("reply_markup", {}).get("inline_keyboard", ())
    lines += ["  " + " ".join(f"[{button['text']}]" for button in row) for row in rows]
    return lines


def _indented(text: str) -> list[str]:
    every = text.rstrip("\n").split("\n")
    shown = every if len(every) <= 14 else [*every[:12], f"… ({len(every) - 12} more lines)"]
    return [f"  {line}".rstrip() for line in shown]
