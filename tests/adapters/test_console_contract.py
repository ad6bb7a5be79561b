"""The consoles keep the contract that all adapters share."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.input import create_pipe_input

from adapters.console.attachments import AttachmentDirectory
from adapters.console.jsonl import JsonLines
from adapters.console.lines import Lines
from adapters.console.pending import Speaker
from adapters.console.streams import LineReader, Writer
from adapters.contract import Adapter
from tests.adapters.contract_suite import EveryAdapter
from tests.adapters.test_console_terminal import ENTER, Desk


class Pipes:
    """Two pipes with an adapter between them; what it wrote is read as a person at the other end would."""

    adapter: Adapter

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._written = b""
        near_in, self._far_in = os.pipe()
        self._far_out, near_out = os.pipe()
        os.set_blocking(self._far_out, False)
        self._descriptors = [near_in, self._far_in, self._far_out, near_out]
        self.reader, self.writer = LineReader(near_in), Writer(near_out)

    async def write(self, text: str) -> None:
        os.write(self._far_in, self.line(text).encode() + b"\n")

    async def until_seen(self, text: str) -> None:
        while text not in self.seen():
            await anyio.wait_readable(self._far_out)

    def seen(self) -> str:
        try:
            while data := os.read(self._far_out, 65536):
                self._written += data
        except BlockingIOError:
            pass
        return self.read(self._written.decode())

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)

    def line(self, text: str) -> str:
        return text

    def read(self, written: str) -> str:
        return written

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.directory.iterdir()}


class JsonPipes(Pipes):
    """The same for programs."""

    def line(self, text: str) -> str:
        return json.dumps({"text": text})

    def read(self, written: str) -> str:
        replies = [json.loads(line) for line in written.splitlines(keepends=True) if line.endswith("\n")]
        self.replies = [reply for reply in replies if "text" in reply]
        return "".join(f"{reply['text']}\n{json.dumps(reply['buttons'])}\n" for reply in self.replies)

    def files(self) -> dict[str, bytes]:
        self.seen()
        return {file["name"]: file["content"].encode() for reply in self.replies for file in reply["files"]}


class Keyboard:
    """The prompt."""

    def __init__(self, desk: Desk, directory: Path) -> None:
        self._desk = desk
        self._directory = directory
        self.adapter = desk.adapter

    async def write(self, text: str) -> None:
        self._desk.press(text, ENTER)

    async def until_seen(self, text: str) -> None:
        await self._desk.screen.shows(text)

    def seen(self) -> str:
        return self._desk.screen.shown()

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (self._directory / "attachments").iterdir()}


class TestLines(EveryAdapter):
    """One message a line."""

    @pytest.fixture
    def scene(self, tmp_path: Path) -> Iterator[Pipes]:
        pipes = Pipes(tmp_path)
        pipes.adapter = Lines(pipes.reader, pipes.writer, AttachmentDirectory(str(tmp_path)), Speaker())
        yield pipes
        pipes.close()


class TestJsonLines(EveryAdapter):
    """The machine's door."""

    @pytest.fixture
    def scene(self, tmp_path: Path) -> Iterator[JsonPipes]:
        pipes = JsonPipes(tmp_path)
        pipes.adapter = JsonLines(pipes.reader, pipes.writer, Speaker())
        yield pipes
        pipes.close()


class TestTerminal(EveryAdapter):
    """The prompt for people."""

    @pytest.fixture
    def scene(self, tmp_path: Path) -> Iterator[Keyboard]:
        with create_pipe_input() as keyboard:
            yield Keyboard(Desk(keyboard, tmp_path), tmp_path)
