"""The machine's clock is set back by hours: nothing waits for it to catch up, and nothing lives longer for it."""

from datetime import timedelta

from gateway.state.access import CODE_LIFETIME, Role
from gateway.state.memory import Memory
from gateway.state.sessions import Session
from tests.gateway.state.kit import HERE, MovedClock, message


async def test_a_question_asked_before_is_still_what_an_answer_means(
    memory: Memory, session: Session, clock: MovedClock
):
    turn = await memory.turns.begin(session.id, "tidy up")
    asked = await memory.approvals.ask(turn.id, HERE, tool="terminal", subject="rm x", reason="it removes x")
    clock.advance(timedelta(hours=-3))
    answer = await memory.inbox.accept(message("/approve", "e1"))

    assert await memory.approvals.pending(HERE, seen_by=answer) == [asked]


async def test_a_code_is_good_for_no_longer_than_its_time(memory: Memory, clock: MovedClock):
    code = await memory.admissions.issue(HERE, "7")
    assert code is not None
    clock.advance(timedelta(hours=-3))

    assert await memory.admissions.redeem(code, Role.USER, by="x") is None

    newer = await memory.admissions.issue(HERE, "7")
    assert newer is not None
    clock.advance(CODE_LIFETIME - timedelta(seconds=1))
    assert await memory.admissions.redeem(newer, Role.USER, by="x") is not None
