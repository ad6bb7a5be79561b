"""The whole program as another program uses it: ``gateway chat --jsonl`` in a process of its own."""

import json
import os
import re
import select
import signal
import subprocess
import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CHAT = "local"
"""The chat of a message that names none."""

PATIENCE_S = 90.0
"""How long anything may take on a busy machine before a test calls it hung."""

_ENTRY = re.compile(r"^ +(?P<number>\d+)\. (?P<id>[0-9a-f]{7})  (?P<time>[\d-]{10} [\d:]{5})  (?P<what>.*)$")


@dataclass(frozen=True)
class Answer:
    """Everything said to one message, up to the word that it is done."""

    replies: tuple[dict[str, Any], ...]

    @property
    def text(self) -> str:
        return "\n".join(reply["text"] for reply in self.replies)

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def files(self) -> dict[str, str]:
        return {file["name"]: file["content"] for reply in self.replies for file in reply["files"]}

    @property
    def commands(self) -> list[str]:
        """What the buttons below it would send."""
        return [button["command"] for reply in self.replies for button in reply["buttons"]]

    @property
    def entries(self) -> list[str]:
        """The checkpoints it lists, newest first, without number, id and time."""
        return [match["what"] for match in self._entries()]

    @property
    def ids(self) -> list[str]:
        """The ids of the checkpoints it lists, newest first."""
        return [match["id"] for match in self._entries()]

    def line(self, beginning: str) -> str:
        """The rest of the one line that begins so."""
        found = [line.strip() for line in self.lines if line.strip().startswith(beginning)]
        assert len(found) == 1, f"{len(found)} lines begin with {beginning!r} in:\n{self.text}"
        return found[0].removeprefix(beginning).strip()

    def _entries(self) -> list[re.Match[str]]:
        return [match for line in self.lines if (match := _ENTRY.match(line))]


class Program:
    """A running ``gateway chat --jsonl``.

    ``log`` and ``errors`` are files that a failure quotes: the program's log, and what it writes to standard error.
    """

    def __init__(self, line: Sequence[str], *, cwd: str, env: Mapping[str, str], log: str, errors: str) -> None:
        self.heard: list[dict[str, Any]] = []
        self._log = log
        self._errors = errors
        self._by_chat: defaultdict[str | None, deque[dict[str, Any]]] = defaultdict(deque)
        self._unread = b""
        with open(errors, "ab") as stderr:
            self.process = subprocess.Popen(
                line,
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )

    def send(self, text: str, chat: str | None = None, **fields: Any) -> None:
        """Send a message without waiting."""
        named = {} if chat is None else {"chat": chat}
        self.write(json.dumps({"text": text, **named, **fields}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Write raw bytes to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def ask(self, text: str, chat: str | None = None) -> Answer:
        """Send a message and wait until it is dealt with."""
        self.send(text, chat)
        return self.answer(CHAT if chat is None else chat)

    def answer(self, chat: str | None = CHAT) -> Answer:
        """Wait until the oldest message of a chat that has not been asked for yet is dealt with."""
        mine = self._by_chat[chat]
        replies: list[dict[str, Any]] = []
        while True:
            while not mine:
                self.hear()
            said = mine.popleft()
            if said.get("done"):
                return Answer(tuple(replies))
            replies.append(said)

    def hear(self) -> dict[str, Any]:
        """Take in the next object, whichever chat it is for."""
        said = self._next()
        assert said is not None, self._told("it ended")
        return said

    def exchange(self, line: bytes) -> list[dict[str, Any]]:
        """Write a raw line and return everything said to it, the last word included."""
        self.write(line + b"\n")
        said = [self.hear()]
        while not said[-1].get("done"):
            said.append(self.hear())
        self._by_chat.clear()
        return said

    def end(self) -> int:
        """Close its input, take in what it still says, and return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        while self._next() is not None:
            pass
        return self.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, and nobody else."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it alone and at once, as the kernel does when memory runs out; what it started is not asked."""
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        """Wait for its end; return its exit code."""
        try:
            return self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(self._told("it did not end")) from None

    def close(self) -> None:
        """End it if it still runs, and let go of its pipes."""
        if self.process.poll() is None:
            self.kill()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue  # what was written last is lost with the process that would have read it

    def _next(self) -> dict[str, Any] | None:
        line = self._line()
        if line is None:
            return None
        said: dict[str, Any] = json.loads(line)
        self.heard.append(said)
        self._by_chat[said.get("chat")].append(said)
        return said

    def _line(self) -> bytes | None:
        """The next line of its output, ``None`` at the end."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + PATIENCE_S
        while b"\n" not in self._unread:
            left = max(0.0, deadline - time.monotonic())
            assert select.select([descriptor], [], [], left)[0], self._told("it said nothing more")
            data = os.read(descriptor, 1 << 16)
            if not data:
                assert not self._unread, self._told("its last line is cut off")
                return None
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _told(self, what: str) -> str:
        """What happened, with all there is to explain it."""
        said = "\n".join(json.dumps(value, ensure_ascii=False)[:400] for value in self.heard[-8:])
        return f"{what}; exit code {self.process.poll()}\n{said}\n{_tail(self._errors)}\n{_tail(self._log)}"


def _tail(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return f"--- {os.path.basename(path)}\n{stream.read()[-3000:]}"
    except FileNotFoundError:
        return ""
