"""local-slack: a Slack that nobody here wrote, run for a block; people act in it through its control interface.

It checks no limits and no tokens, and delivers nothing again; what it understands of Slack is not from us.
"""

import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import yaml
from aiohttp import ClientError, ClientSession

from tests.adapters.slack.limits import shown_in

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / ".peers/node_modules/local-slack-linux-x64/bin/local-slack"
ANN, BOT, CHANNEL = "U0ANN", "U0BOT", "C0GEN"
BOT_TOKEN, APP_TOKEN, SECRET = "xoxb-test", "xapp-test", "a-secret"
PATIENCE_S = 60
LOOK_S = 0.05
"""How often it is asked; it tells nothing by itself."""


@dataclass
class LocalSlack:
    """The running program. What the person can read is asked of it again and again until it is there."""

    base: str
    session: ClientSession

    @property
    def api_base(self) -> str:
        return f"{self.base}/api"

    async def say(self, text: str, *, channel: str = CHANNEL, thread: str | None = None) -> dict[str, Any]:
        """Let the person write."""
        given = {"channel": channel, "user": ANN, "text": text, **({"thread_ts": thread} if thread else {})}
        return dict((await self._act("message", given))["message"])

    async def command(self, command: str, text: str = "", *, channel: str = CHANNEL) -> None:
        """Let the person give a slash command."""
        await self._act("command", {"channel": channel, "user": ANN, "command": command, "text": text})

    async def press(self, label: str, message: dict[str, Any]) -> None:
        """Let the person press a button."""
        button = next(button for button in buttons(message) if button["text"]["text"] == label)
        await self._act(
            "interact", {"channel": message["channel"], "messageTs": message["ts"], "user": ANN, "action": button}
        )

    async def open_home(self) -> None:
        """Let the person open the app's page."""
        await self._act("open-home", {"user": ANN})

    async def written(self, channel: str = CHANNEL, thread: str | None = None) -> list[dict[str, Any]]:
        """What the app has written there, and not deleted."""
        async with self.session.get(f"{self.base}/_control/messages/{channel}") as answer:
            messages = (await answer.json())["messages"]
        return [message for message in messages if message["user"] == BOT and message.get("thread_ts") == thread]

    async def log(self) -> list[dict[str, Any]]:
        """Everything that went between it and the app."""
        async with self.session.get(f"{self.base}/_control/log") as answer:
            return list((await answer.json())["log"])

    async def until(
        self, has: str, *, channel: str = CHANNEL, thread: str | None = None, after: int = 0
    ) -> dict[str, Any]:
        """Wait until the app has written a message there that has these words, after so many others."""
        with anyio.fail_after(PATIENCE_S):
            while True:
                for message in (await self.written(channel, thread))[after:]:
                    if has in words(message):
                        return message
                await anyio.sleep(0.05)

    async def until_published(self) -> str:
        """Wait until the app shows something on the person's page, and return its words."""
        with anyio.fail_after(PATIENCE_S):
            while True:
                calls = [entry["detail"] for entry in await self.log() if entry["summary"] == "views.publish"]
                if calls:
                    view = calls[0]["view"]
                    given = json.loads(view) if isinstance(view, str) else view
                    return "\n".join(map(shown_in, given["blocks"]))
                await anyio.sleep(LOOK_S)

    async def _act(self, what: str, given: dict[str, Any]) -> dict[str, Any]:
        async with self.session.post(f"{self.base}/_control/{what}", json=given) as answer:
            said = dict(await answer.json())
        assert said["ok"], said
        return said


@asynccontextmanager
async def running(base: Path, *, request_url: str = "") -> AsyncIterator[LocalSlack]:
    """Run it; with a ``request_url`` it delivers there, else through sockets."""
    assert PROGRAM.exists(), f"{PROGRAM} is missing; .ci/run installs it"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = {"appId": "A0APP", "botUserId": BOT, "botName": "takeback", "botToken": BOT_TOKEN, "appToken": APP_TOKEN}
    app |= {"signingSecret": SECRET, "mode": "events" if request_url else "socket"}
    config = {
        "workspace": {"name": "Team", "domain": "team", "teamId": "T0TEAM"},
        "app": app | ({"requestUrl": request_url} if request_url else {}),
        "users": [{"id": ANN, "name": "ann"}],
        "channels": [{"id": CHANNEL, "name": "general", "members": [ANN, BOT]}],
    }
    path = base / "local-slack.yaml"
    await anyio.Path(path).write_text(yaml.safe_dump(config))
    command = [str(PROGRAM), "--config", str(path), "--port", str(port), "--base-host", "127.0.0.1"]
    command += ["--files-dir", str(base / "slack-files")]
    async with await anyio.open_process(command, cwd=base, stdout=None, stderr=None) as process:
        try:
            async with ClientSession() as session:
                slack = LocalSlack(f"http://127.0.0.1:{port}", session)
                with anyio.fail_after(PATIENCE_S):
                    await _until_it_answers(slack)
                yield slack
        finally:
            process.kill()


async def _until_it_answers(slack: LocalSlack) -> None:
    while True:
        try:
            await slack.log()
        except ClientError:
            await anyio.sleep(LOOK_S)
        else:
            return


def buttons(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The buttons of a message."""
    rows = [block for block in message.get("blocks") or () if block["type"] == "actions"]
    return [button for row in rows for button in row["elements"]]


def words(message: dict[str, Any]) -> str:
    """What a message says."""
    text = message.get("text", "")
    return re.sub("&(lt|gt|amp);", lambda match: {"lt": "<", "gt": ">", "amp": "&"}[match[1]], text)
