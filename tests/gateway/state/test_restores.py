"""Restores move heads and never delete; what the agent knows follows the head."""

import pytest

from gateway.state.errors import UnknownRestore, UnknownSession
from gateway.state.memory import Memory, open_memory
from gateway.state.messages import Role
from gateway.state.restores import Restore, RestoreKind, RestoreState
from gateway.state.sessions import Session
from tests.gateway.state.kit import HERE, MovedClock
from tests.gateway.state.test_sessions import turn

CHECKPOINT = "c" * 40
SAFETY = "5" * 40


async def restore(
    memory: Memory,
    session: Session,
    new_head: int | None,
    *,
    kind: RestoreKind = RestoreKind.ROLLBACK,
    undoes: Restore | None = None,
    note: str | None = None,
    token: str = "",
) -> Restore:
    token = token or f"t{len(await memory.database.fetch_all('SELECT 1 FROM restores'))}"
    await memory.restores.plan(
        session.id,
        token=token,
        kind=kind,
        checkpoint_id=CHECKPOINT,
        new_head=new_head,
        undoes=undoes.id if undoes else None,
    )
    return await memory.restores.complete(token, safety_id=SAFETY, note=note)


async def head(memory: Memory, session: Session) -> int | None:
    return (await memory.sessions.get(session.id)).head


async def words(memory: Memory, session: Session) -> list[str]:
    return [message.content for message in await memory.messages.history(session.id)]


async def test_a_restore_moves_the_head_when_it_is_complete(memory: Memory, session: Session):
    first, second = await turn(memory, session), await turn(memory, session)
    planned = await memory.restores.plan(
        session.id, token="t", kind=RestoreKind.ROLLBACK, checkpoint_id=CHECKPOINT, new_head=first.id
    )
    assert await head(memory, session) == second.id

    done = await memory.restores.complete("t", safety_id=SAFETY)

    assert (planned.state, planned.old_head, planned.new_head) == (RestoreState.PLANNED, second.id, first.id)
    assert (done.state, done.safety_id, done.head_moved) == (RestoreState.DONE, SAFETY, True)
    assert await head(memory, session) == first.id
    assert await memory.turns.get(second.id) == second


async def test_completing_twice_changes_nothing(memory: Memory, session: Session):
    first = await turn(memory, session)
    done = await restore(memory, session, None, token="t", note="taken back")
    await turn(memory, session)
    where = await head(memory, session)

    again = await memory.restores.complete("t", safety_id="other", note="again")

    assert (again.safety_id, again.new_head) == (done.safety_id, None)
    assert await head(memory, session) == where
    assert "again" not in await words(memory, session)
    assert first.parent_id is None


async def test_a_refused_restore_leaves_the_head(memory: Memory, session: Session):
    only = await turn(memory, session)
    await memory.restores.plan(
        session.id, token="t", kind=RestoreKind.ROLLBACK, checkpoint_id=CHECKPOINT, new_head=None
    )

    refused = await memory.restores.refuse("t")

    assert refused.state is RestoreState.REFUSED
    assert await head(memory, session) == only.id
    assert (await memory.restores.complete("t", safety_id=SAFETY)).state is RestoreState.REFUSED
    assert await head(memory, session) == only.id
    assert await memory.restores.latest_undoable(session.id) is None


async def test_a_head_that_went_on_meanwhile_is_not_moved(memory: Memory, session: Session):
    first = await turn(memory, session)
    await memory.restores.plan(
        session.id, token="t", kind=RestoreKind.ROLLBACK, checkpoint_id=CHECKPOINT, new_head=None
    )
    second = await turn(memory, session)

    done = await memory.restores.complete("t", safety_id=SAFETY)

    assert (done.state, done.head_moved) == (RestoreState.DONE, False)
    assert await head(memory, session) == second.id
    assert second.parent_id == first.id


async def test_a_restore_that_came_half_way_leaves_the_head(memory: Memory, session: Session):
    only = await turn(memory, session)
    await memory.restores.plan(
        session.id, token="t", kind=RestoreKind.ROLLBACK, checkpoint_id=CHECKPOINT, new_head=None
    )

    done = await memory.restores.complete("t", safety_id=SAFETY, in_part=True)

    assert (done.state, done.head_moved) == (RestoreState.DONE, False)
    assert await head(memory, session) == only.id


async def test_redo_takes_back_the_newest_restore_and_then_the_one_before(memory: Memory, session: Session):
    one, two, three = [await turn(memory, session) for _ in range(3)]
    first = await restore(memory, session, two.id, kind=RestoreKind.UNDO)
    second = await restore(memory, session, one.id, kind=RestoreKind.UNDO)

    latest = await memory.restores.latest_undoable(session.id)
    assert latest is not None
    assert (latest.id, latest.stale, latest.old_head) == (second.id, False, two.id)
    await restore(memory, session, latest.old_head, kind=RestoreKind.REDO, undoes=latest)
    assert await head(memory, session) == two.id

    latest = await memory.restores.latest_undoable(session.id)
    assert latest is not None
    assert latest.id == first.id
    await restore(memory, session, latest.old_head, kind=RestoreKind.REDO, undoes=latest)
    assert await head(memory, session) == three.id
    assert await memory.restores.latest_undoable(session.id) is None


async def test_a_new_turn_makes_the_redo_stale(memory: Memory, session: Session):
    await turn(memory, session)
    await restore(memory, session, None)

    await turn(memory, session)

    latest = await memory.restores.latest_undoable(session.id)
    assert latest is not None
    assert latest.stale


async def test_a_turn_elsewhere_does_not_make_it_stale(memory: Memory, session: Session):
    await turn(memory, session)
    await restore(memory, session, None)
    other = await memory.sessions.start(HERE, workspace="app", root="/w/app")

    await turn(memory, other)

    latest = await memory.restores.latest_undoable(session.id)
    assert latest is not None
    assert not latest.stale
    assert await memory.restores.latest_undoable(other.id) is None


async def test_turns_that_were_taken_back_are_not_in_the_history(memory: Memory, session: Session):
    first, _ = await turn(memory, session, "one"), await turn(memory, session, "two")
    done = await restore(memory, session, first.id, note="two was taken back")

    assert await words(memory, session) == ["one", "two was taken back"]

    await restore(memory, session, done.old_head, kind=RestoreKind.REDO, undoes=done)
    assert await words(memory, session) == ["one", "two"]


async def test_a_note_stands_between_the_turn_it_followed_and_the_next(memory: Memory, session: Session):
    first, _ = await turn(memory, session, "one"), await turn(memory, session, "two")
    await restore(memory, session, first.id, note="two was taken back")
    third = await turn(memory, session, "three")

    assert await words(memory, session) == ["one", "two was taken back", "three"]
    assert await memory.messages.notes_before(third.id) == ["two was taken back"]
    assert [m.content for m in await memory.messages.history(session.id, before=third.id)] == [
        "one",
        "two was taken back",
    ]


async def test_a_note_before_the_first_turn_is_read(memory: Memory, session: Session):
    await turn(memory, session, "one")
    await restore(memory, session, None, note="all was taken back")

    assert await words(memory, session) == ["all was taken back"]
    second = await turn(memory, session, "two")
    assert await words(memory, session) == ["all was taken back", "two"]
    assert await memory.messages.notes_before(second.id) == ["all was taken back"]


async def test_a_note_is_not_read_on_the_branch_it_speaks_of(memory: Memory, session: Session):
    """The head goes back to a branch by its safety checkpoint rather than by undoing the restore."""
    first, second = await turn(memory, session, "one"), await turn(memory, session, "two")
    await restore(memory, session, first.id, note="two was taken back")
    await turn(memory, session, "three")

    await restore(memory, session, second.id)

    assert await words(memory, session) == ["one", "two"]


async def test_a_note_of_a_restore_that_was_undone_is_not_read_any_more(memory: Memory, session: Session):
    """Also when the head comes back to the place where it was written."""
    first, _ = await turn(memory, session, "one"), await turn(memory, session, "two")
    done = await restore(memory, session, first.id, note="rolled back")
    await restore(memory, session, done.old_head, kind=RestoreKind.REDO, undoes=done)

    await restore(memory, session, first.id, kind=RestoreKind.UNDO, note="undone")

    assert await words(memory, session) == ["one", "undone"]
    third = await turn(memory, session, "three")
    assert await memory.messages.notes_before(third.id) == ["undone"]


async def test_a_restore_of_files_tells_the_agent_and_leaves_the_conversation(memory: Memory, session: Session):
    only = await turn(memory, session, "one")

    await restore(memory, session, only.id, kind=RestoreKind.FILES, note="a.py went back")

    assert await head(memory, session) == only.id
    assert await words(memory, session) == ["one", "a.py went back"]


async def test_a_note_by_itself_is_read_next(memory: Memory, session: Session):
    await turn(memory, session, "one")

    await memory.messages.add_note(session.id, "checkpoints are off")

    second = await turn(memory, session, "two")
    assert await memory.messages.notes_before(second.id) == ["checkpoints are off"]
    assert await memory.messages.notes_before((await turn(memory, session)).id) == []


async def test_history_is_bounded_by_turns(memory: Memory, session: Session):
    for number in range(5):
        await turn(memory, session, str(number))

    found = await memory.messages.history(session.id, turns=2)

    assert [message.content for message in found] == ["3", "4"]
    assert len(await memory.messages.history(session.id, turns=5)) == 5


async def test_a_note_before_all_turns_is_in_a_history_that_holds_all_turns(memory: Memory, session: Session):
    await memory.messages.add_note(session.id, "note")
    await turn(memory, session, "one")
    await turn(memory, session, "two")

    assert len(await memory.messages.history(session.id, turns=2)) == 3
    assert len(await memory.messages.history(session.id, turns=1)) == 1


async def test_history_of_another_session_is_not_read(memory: Memory, session: Session):
    await turn(memory, session, "old")
    await memory.messages.add_note(session.id, "old note")

    new = await memory.sessions.start(HERE, workspace="app", root="/w/app")

    await memory.messages.add_note(new.id, "new note")
    assert await words(memory, new) == ["new note"]


async def test_tool_calls_are_part_of_the_history(memory: Memory, session: Session):
    begun = await memory.turns.begin(session.id, "x")
    call = await memory.messages.begin_call(begun.id, "read_file", {"path": "a"})
    await memory.messages.finish_call(call, "A", ok=True)

    roles = [message.role for message in await memory.messages.history(session.id)]

    assert roles == [Role.USER, Role.TOOL]
    assert await memory.messages.history(session.id, before=begun.id) == []


async def test_what_a_dead_process_planned_is_found(memory: Memory, session: Session, clock: MovedClock, home):
    await turn(memory, session)
    await memory.restores.plan(
        session.id, token="t", kind=RestoreKind.ROLLBACK, checkpoint_id=CHECKPOINT, new_head=None, inbox_id=None
    )
    assert await memory.restores.planned() == [], "its own are under way"

    async with open_memory(str(home), clock=clock) as other:
        assert await other.restores.planned() == [], "those of a live process are under way too"
        async with other.database.transaction() as tx:
            await tx.execute("UPDATE restores SET owner = 'g-dead'")

        found = await other.restores.planned()

    assert [restore.token for restore in found] == ["t"]


async def test_unknown_restores_are_named(memory: Memory):
    for act in (memory.restores.refuse("none"), memory.restores.complete("none", safety_id=None)):
        with pytest.raises(UnknownRestore, match="none"):
            await act
    with pytest.raises(UnknownSession, match="s-none"):
        await memory.restores.plan("s-none", token="t", kind=RestoreKind.UNDO, checkpoint_id=None, new_head=None)
    assert await memory.restores.find("none") is None
