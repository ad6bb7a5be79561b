"""What an agent is shown of a long conversation: a summary of the older turns, which are neither changed nor lost."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from adapters.contract import Place
from gateway.state.compactions import Compaction
from gateway.state.memory import Memory, open_memory
from gateway.state.messages import Message, Role
from gateway.state.restores import RestoreKind
from gateway.state.sessions import Session
from gateway.state.turns import Turn, TurnState
from gateway.turns.history import Histories, cut, shown, size
from gateway.turns.summary import LEFT_OUT, PlainSummary
from gateway.turns.transcripts import read_transcript

PLACE = Place("console", "here")
NOW = datetime(2026, 3, 16, tzinfo=UTC)
ALLOWED = 4_000
WORDY = "x" * 1_000


@pytest.fixture
async def memory(clean_home: Path) -> AsyncIterator[Memory]:
    async with open_memory(str(clean_home)) as memory:
        yield memory


@pytest.fixture
async def session(memory: Memory) -> Session:
    return await memory.sessions.start(PLACE, workspace="app", root="/w")


@pytest.fixture
def histories(memory: Memory) -> Histories:
    return Histories(memory)


async def took_turn(memory: Memory, session: Session, asked: str, answered: str = "done") -> Turn:
    turn = await memory.turns.begin(session.id, asked)
    await memory.messages.add(turn.id, Role.ASSISTANT, answered)
    return await memory.turns.finish(turn.id, TurnState.DONE)


async def move_head(memory: Memory, session: Session, head: int | None, token: str) -> None:
    await memory.restores.plan(session.id, token=token, kind=RestoreKind.UNDO, checkpoint_id=None, new_head=head)
    await memory.restores.complete(token, safety_id=None, note=f"moved by {token}")


def said(messages: Sequence[Message]) -> list[str]:
    return [message.content for message in messages]


def message(turn_id: int | None, role: Role, content: str) -> Message:
    return Message(0, turn_id, role, content, NOW)


CONVERSATION = (
    message(None, Role.NOTE, "n" * 5),
    message(1, Role.USER, "a" * 10),
    message(1, Role.ASSISTANT, "b" * 10),
    message(1, Role.NOTE, "m" * 5),
    message(3, Role.USER, "c" * 10),
    message(3, Role.ASSISTANT, "d" * 10),
    message(7, Role.USER, "e" * 10),
    message(7, Role.NOTE, "o" * 5),
)


@pytest.mark.parametrize(
    ("characters", "turn_id", "kept"),
    [(40, 1, 5), (39, 3, 2), (15, 3, 2), (14, 7, 1), (5, 7, 1), (0, 7, 1)],
)
def test_whole_turns_are_kept_with_the_notes_that_follow_them(characters: int, turn_id: int, kept: int) -> None:
    found = cut(CONVERSATION, characters)

    assert found is not None
    assert found.turn_id == turn_id
    assert found.kept == CONVERSATION[-kept:]
    assert found.older + found.kept == CONVERSATION


def test_without_turns_there_is_nothing_to_sum_up() -> None:
    assert cut((), 0) is None
    assert cut((message(None, Role.NOTE, "n"), message(4, Role.SUMMARY, "s")), 0) is None


def test_summary_stands_before_what_came_after_it() -> None:
    compaction = Compaction(1, "s", 3, "long ago", "plain", NOW)

    first, *rest = shown(compaction, CONVERSATION[6:])

    assert (first.role, first.turn_id, first.content) == (Role.SUMMARY, 3, "long ago")
    assert tuple(rest) == CONVERSATION[6:]
    assert shown(None, CONVERSATION) == list(CONVERSATION)


async def test_short_conversation_is_shown_as_it_was(memory: Memory, session: Session, histories: Histories) -> None:
    await took_turn(memory, session, "one")
    now = await memory.turns.begin(session.id, "two")

    assert said(await histories.read(now, ALLOWED)) == ["one", "done"]
    assert await memory.compactions.applicable(now.id) is None


async def test_long_conversation_begins_with_a_summary_and_keeps_its_turns(
    memory: Memory, session: Session, histories: Histories
) -> None:
    turns = [await took_turn(memory, session, f"{number} {WORDY}") for number in range(6)]
    now = await memory.turns.begin(session.id, "next")

    history = await histories.read(now, ALLOWED)

    assert history[0].role is Role.SUMMARY
    assert said(history[1:]) == [f"5 {WORDY}", "done"]
    assert sum(map(size, history)) <= ALLOWED
    assert history[0].content.startswith(f"The conversation began with: 0 {WORDY[:100]}")
    assert f"Turn {turns[4].id}: 4 xxx" in history[0].content
    assert await memory.turns.active(session.id) == [now, *reversed(turns)]
    assert said(await histories.read(now, ALLOWED)) == said(history)
    assert len(await memory.database.fetch_all("SELECT id FROM compactions")) == 1


async def test_summary_gives_way_to_the_turns_when_the_head_moves_before_it_and_returns_with_them(
    memory: Memory, session: Session, histories: Histories
) -> None:
    turns = [await took_turn(memory, session, f"{number} {WORDY}") for number in range(6)]
    summed_up = await histories.read(await memory.turns.begin(session.id, "next"), ALLOWED)
    head = await memory.turns.running(session.id)
    assert head is not None
    await memory.turns.finish(head.id, TurnState.DONE)

    await move_head(memory, session, turns[1].id, "back")
    branch = await memory.turns.begin(session.id, "another way")
    before = await histories.read(branch, ALLOWED)
    await memory.turns.finish(branch.id, TurnState.DONE)
    await move_head(memory, session, head.id, "forth")
    again = await histories.read(await memory.turns.begin(session.id, "on"), ALLOWED)

    assert said(before) == [f"0 {WORDY}", "done", f"1 {WORDY}", "done", "moved by back"]
    assert said(again)[: len(summed_up)] == said(summed_up)
    assert said(again)[len(summed_up) :] == ["next", "moved by forth"]


async def test_turn_taken_back_is_in_no_later_summary(memory: Memory, session: Session, histories: Histories) -> None:
    kept = await took_turn(memory, session, "kept")
    await took_turn(memory, session, "taken back")
    await move_head(memory, session, kept.id, "undo")
    for _ in range(3):
        await took_turn(memory, session, 2 * WORDY)

    summary = (await histories.read(await memory.turns.begin(session.id, "next"), ALLOWED))[0].content

    assert "kept" in summary
    assert "Note: moved by undo" in summary
    assert "taken back" not in summary


async def test_second_summary_goes_on_from_the_first(memory: Memory, session: Session, histories: Histories) -> None:
    await took_turn(memory, session, "make me a cake")
    summaries = []
    for number in range(12):
        await took_turn(memory, session, f"{number} {WORDY}")
        now = await memory.turns.begin(session.id, "look")
        history = await histories.read(now, ALLOWED)
        assert sum(map(size, history)) <= ALLOWED
        summaries += [message.content for message in history if message.role is Role.SUMMARY]
        await memory.turns.finish(now.id, TurnState.DONE)

    assert len(set(summaries)) >= 3
    assert all(summary.startswith("The conversation began with: make me a cake\n") for summary in summaries)
    assert summaries[-1].count(LEFT_OUT) == 1


class Model:
    """Sums up as a model would, or fails as one would."""

    name = "model"

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.given: Sequence[Message] = ()

    async def compact(self, older: Sequence[Message], *, characters: int) -> str:
        assert characters == ALLOWED // 4
        self.given = older
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "made_by", "begins"),
    [
        ("they baked", "model", "they baked"),
        ("y" * ALLOWED, "model", "y" * (ALLOWED // 4)),
        (RuntimeError("overloaded"), "plain", "The conversation began with: 0"),
    ],
)
async def test_agent_may_sum_up_itself_and_a_plain_summary_stands_in_for_it(
    memory: Memory, session: Session, histories: Histories, answer: str | Exception, made_by: str, begins: str
) -> None:
    for number in range(6):
        await took_turn(memory, session, f"{number} {WORDY}")
    now = await memory.turns.begin(session.id, "next")
    model = Model(answer)

    history = await histories.read(now, ALLOWED, model)

    assert said(model.given)[0] == f"0 {WORDY}"
    assert history[0].content.startswith(begins)
    assert sum(map(size, history)) <= ALLOWED
    found = await memory.compactions.applicable(now.id)
    assert found is not None
    assert (found.made_by, found.summary) == (made_by, history[0].content)


async def test_plain_summary_has_a_line_for_each_turn_with_its_receipt() -> None:
    call = Message(0, 4, Role.TOOL, "ok", NOW, "write_file", None, {"path": "a.py", "content": "x"}, ok=True)
    cut_off = Message(0, 9, Role.TOOL, "", NOW, "terminal", None, {"command": "make"}, ok=None)
    older = [
        message(4, Role.USER, "write\nit"),
        call,
        message(4, Role.ASSISTANT, "written\n✎ 1 file, +1/-0: a.py · checkpoint 1234567\n"),
        message(4, Role.NOTE, "The user took back the last turn."),
        message(7, Role.USER, "why?"),
        message(7, Role.ASSISTANT, "Because\nof that."),
        message(9, Role.USER, "build"),
        *[cut_off] * 10,
    ]

    summary = await PlainSummary().compact(older, characters=2_000)

    assert summary.split("\n") == [
        "The conversation began with: write it",
        "Turn 4: write it | write_file a.py: done | ✎ 1 file, +1/-0: a.py · checkpoint 1234567",
        "Note: The user took back the last turn.",
        "Turn 7: why? | Because of that.",
        "Turn 9: build | " + " | ".join(["terminal make: cut off"] * 8) + " | (+2 calls)",
    ]


@pytest.mark.parametrize("characters", [100, 200, 400])
async def test_plain_summary_drops_the_oldest_lines_first(characters: int) -> None:
    older = [message(number, Role.USER, f"message {number}") for number in range(1, 30)]

    lines = (await PlainSummary().compact(older, characters=characters)).split("\n")

    assert sum(map(len, lines)) + len(lines) - 1 <= characters
    assert lines[:2] == ["The conversation began with: message 1", LEFT_OUT]
    assert lines[-1] == "Turn 29: message 29"
    assert lines[2:] == [f"Turn {number}: message {number}" for number in range(32 - len(lines), 30)]


async def test_export_holds_summaries_and_questions(
    memory: Memory, session: Session, histories: Histories, clean_home: Path
) -> None:
    turns = [await took_turn(memory, session, f"{number} {WORDY}") for number in range(6)]
    now = await memory.turns.begin(session.id, "next")
    await histories.read(now, ALLOWED)
    await memory.approvals.ask(now.id, PLACE, tool="terminal", subject="rm -r /x", reason="rm deletes /x")

    exported = await read_transcript(str(clean_home / "gateway.db"), session.id)

    (compaction,) = exported["compactions"]
    assert (compaction["turn_id"], compaction["made_by"]) == (turns[4].id, "plain")
    (approval,) = exported["approvals"]
    assert (approval["turn_id"], approval["subject"], approval["state"]) == (now.id, "rm -r /x", "pending")
    assert len(exported["turns"]) == 7
