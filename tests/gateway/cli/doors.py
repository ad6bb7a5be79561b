"""A person's end of ``gateway chat --jsonl``: says something, and takes in replies until it is dealt with."""

import json
import select
import subprocess
from dataclasses import dataclass, field
from typing import Any

ANSWER_S = 60


@dataclass
class Door:
    """A running ``gateway chat --jsonl``."""

    process: subprocess.Popen[bytes]
    seen: list[dict[str, Any]] = field(default_factory=list)

    def send(self, text: str, **fields: str) -> None:
        self.write(json.dumps({"text": text, **fields}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def next(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        # Nothing is read ahead of a line, so waiting for the descriptor is waiting for the line.
        assert select.select([self.process.stdout], [], [], ANSWER_S)[0], f"no answer within {ANSWER_S} s"
        line = self.process.stdout.readline()
        assert line, "the program ended"
        answer = json.loads(line)
        self.seen.append(answer)
        return answer

    def ask(self, text: str, **fields: str) -> str:
        """Send a message and return the texts of its replies, once it is done."""
        self.send(text, **fields)
        chat = fields.get("chat", "local")
        said = []
        while True:
            answer = self.next()
            if answer.get("chat") != chat:
                continue
            if answer.get("done"):
                return "\n".join(said)
            said.append(answer["text"])

    def end(self) -> int:
        """Close the input and wait; returns the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        self.seen += [json.loads(line) for line in rest.splitlines()]
        self.process.stdout.close()
        return self.process.wait(timeout=30)
