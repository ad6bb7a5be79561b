"""What several chats, several turns and a person's hand leave in one file, and what of it a restore takes back."""

from dataclasses import dataclass, field

import pytest

from engine.model import Checkpoint, RestoreReport, ToolResult
from tests.engine.lab import Lab, paths

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
        result = self.lab.write(FILE, self._with(name, line), chat=chat)
        return self.note(name, chat, result)

    def note(self, name: str, chat: str, result: ToolResult) -> Checkpoint:
        assert result.checkpoint is not None
        self.turns[name] = (str(self.lab.turn), chat, result.checkpoint)
        return result.checkpoint

    def edit(self, name: str, line: int) -> None:
        """Write a name on a line by hand."""
        self.lab.edit(FILE, self._with(name, line))

    def undo(self, name: str) -> RestoreReport:
        turn, chat, checkpoint = self.turns[name]
        plan = self.lab.engine.plan_restore(self.lab.workspace, checkpoint.id, turns=[turn], chat=chat)
        return self.lab.engine.apply_restore(plan)

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

    def _with(self, name: str, line: int) -> str:
        lines = self.lab.read(FILE).splitlines(keepends=True)
        lines[line] = f"{name}\n"
        return "".join(lines)


def text() -> list[str]:
    return [f"line {number}\n" for number in range(LINES)]


@pytest.fixture
def desk(lab: Lab) -> Desk:
    lab.edit(FILE, "".join(text()))
    return Desk(lab)


# --- every order


@pytest.mark.parametrize(
    "order",
    [
        ("a1", "hand", "a2", "b1"),
        ("a1", "b1", "hand", "a2"),
        ("b1", "a1", "a2", "hand"),
        ("hand", "a2", "b1", "a1"),
    ],
    ids="-".join,
)
def test_undo_takes_back_its_own_lines_whatever_the_order(desk: Desk, order: tuple[str, ...]) -> None:
    for line, name in enumerate(order):
        if name == "hand":
            desk.edit("hand", 10 * line)
        else:
            desk.change(name, 10 * line, A if name[0] == "a" else B)
    newest_of_a = next(name for name in reversed(order) if name[0] == "a")

    report = desk.undo(newest_of_a)

    stands_by_hand = order[-1] == "hand"
    assert desk.names == (set(order) if stands_by_hand else set(order) - {newest_of_a})
    assert paths(report.kept) == ([FILE] if stands_by_hand else [])
    assert desk.intact


@pytest.mark.parametrize("order", [("a1", "b1", "a2", "b2"), ("b1", "a1", "b2", "a2")], ids="-".join)
def test_rollback_takes_back_all_lines_of_its_chat_and_none_of_another(desk: Desk, order: tuple[str, ...]) -> None:
    for line, name in enumerate(order):
        desk.change(name, 10 * line, A if name[0] == "a" else B)
    first = next(name for name in order if name[0] == "a")

    report = desk.rollback(first, A)
    assert desk.names == {"b1", "b2"}
    assert desk.intact

    back = desk.redo(report, A)
    assert desk.names == set(order)
    desk.redo(back, A)
    assert desk.names == {"b1", "b2"}
    desk.rollback(next(name for name in order if name[0] == "b"), B)
    assert desk.names == set()
    assert desk.lab.read(FILE) == "".join(text())


@pytest.mark.parametrize("order", [("a1", "b1", "a2"), ("b1", "a2", "a1"), ("a2", "a1", "b1")], ids="-".join)
def test_undoing_every_turn_in_any_order_ends_where_it_began(desk: Desk, order: tuple[str, ...]) -> None:
    for line, name in enumerate(["a1", "b1", "a2"]):
        desk.change(name, 10 * line, A if name[0] == "a" else B)
    left = {"a1", "b1", "a2"}

    for name in order:
        desk.undo(name)
        left -= {name}
        assert desk.names == left

    assert desk.lab.read(FILE) == "".join(text())
