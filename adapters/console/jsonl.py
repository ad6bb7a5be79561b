"""The machine's door: JSON lines in, JSON lines out, many chats at once.

In: ``{"text": "...", "chat": "...", "user": "..."}``, the last two optional. Out: for each reply ``{"chat",
"text", "files", "buttons"}``, then ``{"chat", "done": true}`` when the message has been dealt with completely;
for a line that cannot be used ``{"error"}`` and ``{"done": true}``, with the chat where it is known. A file that
is not UTF-8 has ``"encoding": "base64"``. Output is ASCII, a line is written whole, and nothing else is written.
"""

import base64
import contextlib
import json
from typing import Any

import anyio

from adapters.console.pending import NAME, Pending, Speaker
from adapters.console.streams import LineReader, LineTooLong, OutputGone, Writer
from adapters.console.text import encodable, plain
from adapters.contract import Attachment, Inbound, Outbound, Place, Receive, SendFailed

LONGEST_NAME = 200
FIELDS = ("text", "chat", "user")


class BadLine(Exception):
    """A line of input that cannot be used; ``chat`` is set where the line names a usable one."""

    def __init__(self, reason: str, chat: str | None = None) -> None:
        self.reason = reason
        self.chat = chat
        super().__init__(reason)


class JsonLines:
    """The console for programs."""

    name = NAME
    has_buttons = False
    connected = True

    def __init__(self, reader: LineReader, writer: Writer, speaker: Speaker) -> None:
        self._reader = reader
        self._writer = writer
        self._speaker = speaker
        self._pending = Pending()

    async def run(self, receive: Receive) -> None:
        """Take in lines until the input ends and all is dealt with, or until nobody reads the output."""
        async with anyio.create_task_group() as tasks:

            async def end_when_unread() -> None:
                await self._writer.gone.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(end_when_unread)
            with contextlib.suppress(OutputGone):
                await self._take_in(receive)
                await self._pending.wait_all()
            tasks.cancel_scope.cancel()

    async def _take_in(self, receive: Receive) -> None:
        while True:
            try:
                line = await self._reader.next()
                if line is None:
                    return
                if line.strip():
                    await self._hand_over(line, receive)
            except LineTooLong:
                await self._reject(BadLine("the line is too long; write large content with several messages"))
            except BadLine as bad:
                await self._reject(bad)

    async def _hand_over(self, line: bytes, receive: Receive) -> None:
        message = parse(line)
        place = self._speaker.place(message.get("chat"))
        event_id = self._pending.begin()
        user = message.get("user", self._speaker.user)
        reception = await receive(Inbound(place, user, event_id, message["text"], private=True))
        if reception.notice is not None:
            # It was not taken in: this is all that is said of it.
            await self._write(self._reply(place, reception.notice))
            await self.finished(place, event_id)

    async def _reject(self, bad: BadLine) -> None:
        chat = {} if bad.chat is None else {"chat": encodable(bad.chat)}
        await self._write({**chat, "error": bad.reason}, {**chat, "done": True})

    async def send(self, message: Outbound) -> None:
        """Write one reply."""
        try:
            await self._write(
                {
                    **self._reply(message.place, plain(message)),
                    "files": [_file(attachment) for attachment in message.files],
                    "buttons": [
                        {"label": encodable(button.label), "command": encodable(button.command)}
                        for button in message.buttons
                    ],
                }
            )
        except OutputGone:
            raise SendFailed("nobody reads the output any more", retry_after_s=None) from None

    def _reply(self, place: Place, text: str) -> dict[str, Any]:
        return {"chat": encodable(self._speaker.shown(place)), "text": encodable(text), "files": [], "buttons": []}

    async def progress(self, place: Place, text: str) -> None:
        """Nothing: a program waits for replies."""

    async def finished(self, place: Place, event_id: str) -> None:
        """Write that a message is done, if it was one of this run."""
        if event_id not in self._pending:
            return
        # When nobody reads any more, `run` ends because of it, and there is nobody left to tell.
        with contextlib.suppress(OutputGone):
            await self._write({"chat": encodable(self._speaker.shown(place)), "done": True})
        self._pending.end(event_id)

    async def _write(self, *objects: dict[str, Any]) -> None:
        await self._writer.write("".join(json.dumps(value) + "\n" for value in objects).encode("ascii"))


def parse(line: bytes) -> dict[str, str]:
    """Read one line of input.

    Raises:
        BadLine: it is not an object with a text and, at most, a chat and a user.
    """
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadLine(f"the line is not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise BadLine("the line is nested too deeply") from None
    except ValueError as error:
        raise BadLine(f"the line is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadLine('the line must be an object: {"text": "..."}')
    chat = value.get("chat")
    known_chat = chat if isinstance(chat, str) and 0 < len(chat) <= LONGEST_NAME else None
    for name in value:
        if name not in FIELDS:
            raise BadLine(f"unknown field {name!r}; the fields are text, chat and user", known_chat)
    if not isinstance(value.get("text"), str):
        raise BadLine('"text" is missing or is not a string', known_chat)
    for name in ("chat", "user"):
        if name in value and not (isinstance(value[name], str) and 0 < len(value[name]) <= LONGEST_NAME):
            raise BadLine(f'"{name}" must be a string of 1 to {LONGEST_NAME} characters', known_chat)
    return value


def _file(attachment: Attachment) -> dict[str, str]:
    name = encodable(attachment.name)
    try:
        return {"name": name, "content": attachment.content.decode("utf-8")}
    except UnicodeDecodeError:
        content = base64.b64encode(attachment.content).decode("ascii")
        return {"name": name, "content": content, "encoding": "base64"}
