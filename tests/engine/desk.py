"""One file under the hands of two chats and a person, each at lines of their own."""

from dataclasses import dataclass, field

from engine.model import Checkpoint, RestorePlan, RestoreReport, ToolResult
from tests.engine.lab import Lab

FILE = "shared.txt"
LINES = 60
A, B = "console:a", "console:b"


@dataclass
class Desk:
    """Two chats over one file; each change touches one line, far from the others."""

    lab: Lab
    turns: dict[str, tuple[str, str, Checkpoint]] = field(default_factory=dict)

    def change(self, name: str, line: int, chat: str) -> Checkpoint:
        """Let a chat write its name on a line, in a turn of that name."""
        result = self.lab.write(FILE, self.with_line(name, line), chat=chat)
        return self.note(name, chat, result)

    def note(self, name: str, chat: str, result: ToolResult) -> Checkpoint:
        assert result.checkpoint is not None
        self.turns[name] = (str(self.lab.turn), chat, result.checkpoint)
        return result.checkpoint

    def edit(self, name: str, line: int) -> None:
        """Write a name on a line by hand."""
        self.lab.edit(FILE, self.with_line(name, line))

    def plan_undo(self, name: str) -> RestorePlan:
        turn, chat, checkpoint = self.turns[name]
        return self.lab.engine.plan_restore(self.lab.workspace, checkpoint.id, turns=[turn], chat=chat)

    def undo(self, name: str) -> RestoreReport:
        return self.lab.engine.apply_restore(self.plan_undo(name))

    def rollback(
        self, name: str, chat: str, *selection: str, everything: bool = False, to: Checkpoint | None = None
    ) -> RestoreReport:
        target = to or self.turns[name][2]
        plan = self.lab.engine.plan_restore(
            self.lab.workspace, target.id, selection=selection, everything=everything, chat=chat
        )
        return self.lab.engine.apply_restore(plan)

    def redo(self, report: RestoreReport, chat: str) -> RestoreReport:
        assert report.safety is not None
        return self.rollback("", chat, to=report.safety)

    @property
    def names(self) -> set[str]:
        """The names that stand in the file."""
        return {line for line in self.lab.read(FILE).splitlines() if not line.startswith("line ")}

    @property
    def intact(self) -> bool:
        """Whether every other line is as it was in the beginning."""
        lines = self.lab.read(FILE).splitlines(keepends=True)
        plain = text()
        return len(lines) == len(plain) and all(
            line == other for line, other in zip(lines, plain, strict=True) if line.startswith("line ")
        )

    def with_line(self, name: str, line: int) -> str:
        """Return the file as it is, with a name on a line."""
        lines = self.lab.read(FILE).splitlines(keepends=True)
        lines[line] = f"{name}\n"
        return "".join(lines)


def text() -> list[str]:
    return [f"line {number}\n" for number in range(LINES)]
