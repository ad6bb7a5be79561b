"""Chats, sessions and the chain of turns that a head walks along."""

import pytest

from adapters.contract import Place
from gateway.state.errors import TurnRunning, UnknownSession, UnknownTurn
from gateway.state.memory import Memory
from gateway.state.messages import Role
from gateway.state.sessions import Session
from gateway.state.turns import Turn, TurnState, turn_ref
from tests.gateway.state.kit import HERE, THERE, message


async def turn(memory: Memory, session: Session, text: str = "do it") -> Turn:
    begun = await memory.turns.begin(session.id, text)
    return await memory.turns.finish(begun.id, TurnState.DONE)


async def move_head(memory: Memory, session: Session, head: int | None) -> None:
    async with memory.database.transaction() as tx:
        await tx.execute("UPDATE sessions SET head_turn_id = ? WHERE id = ?", head, session.id)


async def test_a_place_that_never_wrote_is_no_chat(memory: Memory):
    assert await memory.sessions.find_chat(HERE) is None
    assert await memory.sessions.current(HERE) is None


async def test_a_chat_is_made_once(memory: Memory):
    first = await memory.sessions.ensure_chat(HERE)
    again = await memory.sessions.ensure_chat(HERE)
    other = await memory.sessions.ensure_chat(THERE)

    assert first == again
    assert other.id != first.id
    assert await memory.sessions.find_chat(HERE) == first


async def test_the_chosen_workspace_is_for_the_next_session(memory: Memory, session: Session):
    await memory.sessions.choose_workspace(HERE, "other")

    current = await memory.sessions.current(HERE)
    chat = await memory.sessions.find_chat(HERE)
    assert current == session
    assert chat is not None
    assert chat.workspace == "other"


async def test_a_new_session_ends_the_one_before_and_keeps_it(memory: Memory, session: Session):
    done = await turn(memory, session)

    new = await memory.sessions.start(HERE, workspace="app", root="/w/app")

    before = await memory.sessions.get(session.id)
    assert await memory.sessions.current(HERE) == new
    assert new.head is None
    assert before.ended_at is not None
    assert before.head == done.id
    assert [found.id for found in await memory.sessions.recent()] == [new.id, session.id]


async def test_chats_of_one_name_on_two_platforms_are_two(memory: Memory):
    one = await memory.sessions.start(Place("telegram", "1"), workspace="app", root="/w")
    two = await memory.sessions.start(Place("slack", "1"), workspace="app", root="/w")

    assert await memory.sessions.current(Place("telegram", "1")) == one
    assert await memory.sessions.current(Place("slack", "1")) == two


@pytest.mark.parametrize("switch", [True, False, None])
async def test_the_checkpoint_switch_belongs_to_the_session(memory: Memory, session: Session, switch: bool | None):
    assert (await memory.sessions.set_checkpoints(session.id, on=switch)).checkpoints is switch

    assert (await memory.sessions.start(HERE, workspace="app", root="/w")).checkpoints is None


async def test_an_unknown_session_is_named(memory: Memory):
    with pytest.raises(UnknownSession, match="s-none"):
        await memory.sessions.get("s-none")
    with pytest.raises(UnknownSession, match="s-none"):
        await memory.turns.begin("s-none", "x")
    with pytest.raises(UnknownTurn, match="7"):
        await memory.turns.get(7)


async def test_turns_form_a_chain_and_the_head_follows(memory: Memory, session: Session):
    first = await turn(memory, session, "one")
    second = await turn(memory, session, "two")

    assert (first.parent_id, second.parent_id) == (None, first.id)
    assert await memory.turns.active(session.id) == [second, first]
    assert await memory.turns.active(session.id, limit=1) == [second]
    assert await memory.turns.head(session.id) == second


async def test_a_turn_after_a_step_back_is_a_branch(memory: Memory, session: Session):
    first, second = await turn(memory, session), await turn(memory, session)
    await move_head(memory, session, first.id)

    third = await turn(memory, session)

    assert third.parent_id == first.id
    assert await memory.turns.active(session.id) == [third, first]
    assert await memory.turns.get(second.id) == second


async def test_left_behind_counts_turns_whichever_way_the_head_moves(memory: Memory, session: Session):
    first, second, third = [await turn(memory, session) for _ in range(3)]
    await move_head(memory, session, first.id)
    branch = await turn(memory, session)

    async def left(old: int | None, new: int | None) -> list[Turn]:
        return await memory.turns.left_behind(session.id, old_head=old, new_head=new)

    assert await left(third.id, first.id) == [third, second]
    assert await left(third.id, None) == [third, second, first]
    assert await left(third.id, branch.id) == [third, second]
    assert await left(branch.id, third.id) == [branch]
    assert await left(first.id, third.id) == []
    assert await left(None, None) == []


async def test_a_session_runs_one_turn_at_a_time(memory: Memory, session: Session):
    running = await memory.turns.begin(session.id, "long")

    with pytest.raises(TurnRunning, match="/stop"):
        await memory.turns.begin(session.id, "next")

    assert await memory.turns.running(session.id) == running
    assert (await memory.sessions.get(session.id)).head == running.id
    await memory.turns.finish(running.id, TurnState.STOPPED)
    assert await memory.turns.running(session.id) is None
    assert (await memory.turns.begin(session.id, "next")).parent_id == running.id


async def test_sessions_run_turns_beside_each_other(memory: Memory, session: Session):
    other = await memory.sessions.start(THERE, workspace="app", root="/w/app")

    await memory.turns.begin(session.id, "here")

    assert (await memory.turns.begin(other.id, "there")).state is TurnState.RUNNING


async def test_the_first_end_of_a_turn_counts(memory: Memory, session: Session):
    begun = await memory.turns.begin(session.id, "x")
    reply = message("", "e").place

    await memory.turns.finish(begun.id, TurnState.STOPPED)
    ended = await memory.turns.finish(begun.id, TurnState.DONE, replies=())

    assert ended.state is TurnState.STOPPED
    assert await memory.outbox.next(reply) is None


async def test_the_first_checkpoint_of_a_turn_stays(memory: Memory, session: Session):
    begun = await memory.turns.begin(session.id, "x")
    await memory.turns.link_checkpoint(begun.id, "a" * 40)
    call = await memory.messages.begin_call(begun.id, "terminal", {"command": "make"})

    await memory.messages.finish_call(call, "ok", ok=True, checkpoint_id="b" * 40)

    assert (await memory.turns.get(begun.id)).checkpoint_id == "a" * 40


async def test_the_engine_knows_a_turn_by_its_ids(memory: Memory, session: Session):
    begun = await memory.turns.begin(session.id, "x")

    ref = turn_ref(session, begun.id)

    assert (ref.chat, ref.session, ref.turn) == ("console:here", session.id, str(begun.id))


async def test_a_chain_of_thousands_is_walked_at_once(memory: Memory, session: Session):
    async with memory.database.transaction() as tx:
        await tx.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
            " INSERT INTO turns (id, session_id, parent_id, text, state, workspace_root, owner, started_at, ended_at)"
            " SELECT i, ?, nullif(i - 1, 0), 't', 'done', '/w', 'g', '2026-01-01T00:00:00.000000Z', NULL FROM n",
            session.id,
        )
    await move_head(memory, session, 5000)

    assert [found.id for found in await memory.turns.active(session.id, limit=3)] == [5000, 4999, 4998]
    assert len(await memory.turns.active(session.id)) == 5000
    assert len(await memory.turns.left_behind(session.id, old_head=5000, new_head=10)) == 4990


async def test_what_was_asked_is_the_turns_first_message(memory: Memory, session: Session):
    begun = await memory.turns.begin(session.id, "rename \udcff.txt")
    call = await memory.messages.begin_call(begun.id, "write_file", {"path": "\udcff.txt"}, call_id="c1")
    await memory.messages.finish_call(call, "written", ok=True, checkpoint_id="c" * 40)
    await memory.messages.add(begun.id, Role.ASSISTANT, "done")

    asked, used, answered = await memory.messages.of_turn(begun.id)

    assert (asked.role, asked.content) == (Role.USER, "rename \udcff.txt")
    assert (used.role, used.tool_name, used.call_id) == (Role.TOOL, "write_file", "c1")
    assert (used.arguments, used.content, used.ok) == ({"path": "\udcff.txt"}, "written", True)
    assert (answered.role, answered.content) == (Role.ASSISTANT, "done")
    assert (await memory.turns.get(begun.id)).checkpoint_id == "c" * 40


async def test_a_call_that_was_cut_off_has_no_result(memory: Memory, session: Session):
    begun = await memory.turns.begin(session.id, "x")
    await memory.messages.begin_call(begun.id, "terminal", {"command": "make"})

    _, call = await memory.messages.of_turn(begun.id)

    assert (call.tool_name, call.content, call.ok) == ("terminal", "", None)
