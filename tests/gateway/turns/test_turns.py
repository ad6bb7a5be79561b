"""Turns run with recorded tools, end in one of five ways, and write nothing after their end."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from adapters.contract import Place
from engine.errors import ToolRefused
from gateway.agents.base import Answer, Tools, TurnContext
from gateway.render import say
from gateway.state.memory import open_memory
from gateway.state.messages import Role
from gateway.state.restores import RestoreKind
from gateway.state.turns import TurnState
from gateway.turns.toolbox import RECORDED_CHARACTERS, TurnOver
from tests.gateway.gateway_kit import Office, open_office
from tests.gateway.platform_kit import HERE, THERE


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    (path / "Makefile").write_text("all:\n")
    return path


@pytest.fixture
async def office(clean_home: Path):
    async with open_office(clean_home) as office:
        yield office


class Scripted:
    """An agent that does what a test says."""

    kind = "scripted"
    own_word = False

    def __init__(self, act: Callable[[Tools], Awaitable[None]], *, failed: bool = False) -> None:
        self.act = act
        self.failed = failed
        self.context: TurnContext | None = None

    async def answer(self, context: TurnContext) -> Answer:
        self.context = context
        await self.act(context.tools)
        return Answer((say("answered"),), failed=self.failed)


async def nothing(tools: Tools) -> None:
    del tools


def pid_in(project: Path) -> int:
    return int((project / "pid").read_text())


async def test_a_turn_writes_its_file_and_is_stored_with_all_it_did(office: Office, project: Path):
    request = await office.request("/write a.txt\nhello\n", project)

    await office.runner.run(request)
    await office.delivery.idle()

    turn = await office.memory.turns.head(request.session.id)
    assert turn is not None
    asked, used, answered = await office.memory.messages.of_turn(turn.id)
    assert (project / "a.txt").read_text() == "hello\n"
    assert turn.state is TurnState.DONE
    assert (asked.role, asked.content) == (Role.USER, "/write a.txt\nhello\n")
    assert (used.tool_name, used.arguments, used.ok) == ("write_file", {"path": "a.txt", "content": "hello\n"}, True)
    assert answered.role is Role.ASSISTANT
    assert office.platform.sent() == [answered.content]
    assert await office.open_messages() == 0


async def test_a_turn_is_linked_to_the_checkpoint_before_its_first_change(office: Office, project: Path):
    request = await office.request("/write a.txt\nhello\n", project)

    await office.runner.run(request)

    (checkpoint,) = await office.offload.checkpoints(request.workspace)
    turn = await office.memory.turns.head(request.session.id)
    assert turn is not None
    assert turn.checkpoint_id == checkpoint.id
    assert checkpoint.turn is not None
    assert (checkpoint.turn.chat, checkpoint.turn.session) == ("console:here", request.session.id)
    assert checkpoint.turn.turn == str(turn.id)


async def test_a_sessions_changes_are_counted_from_its_first_tool_that_can_change(office: Office, project: Path):
    first = await office.request("/read Makefile", project)
    await office.runner.run(first)
    assert await office.offload.session_diff(first.workspace, first.session.id) is None
    (project / "mine.txt").write_text("by hand\n")

    await office.runner.run(await office.request("/write a.txt\nhello\n", project))

    diff = await office.offload.session_diff(first.workspace, first.session.id)
    assert diff is not None
    assert "a.txt" in diff.stat_text
    assert "mine.txt" not in diff.stat_text


async def test_without_checkpoints_no_store_is_made(office: Office, project: Path):
    await office.runner.run(await office.request("/write a.txt\nhello\n", project, guarded=False))
    await office.runner.run(await office.request("$ rm Makefile", project, guarded=False))

    assert (project / "a.txt").exists()
    assert not (project / "Makefile").exists()
    assert not (office.home / "checkpoints").exists()
    assert await office.states() == ["done", "done"]


async def test_a_checkpoint_that_cannot_be_taken_is_said_once_and_blocks_nothing(clean_home: Path, project: Path):
    async with open_office(clean_home, git="/nowhere/git") as office:
        request = await office.request("/write a.txt\nhello\n", project)
        await office.runner.run(request)
        await office.delivery.idle()

        assert (project / "a.txt").read_text() == "hello\n"
        (said,) = office.platform.sent()
        assert "/nowhere/git" in said or "git cannot be used" in said
        assert await office.states() == ["done"]


async def test_an_agents_mistake_fails_the_turn(office: Office, project: Path):
    await office.runner.run(await office.request("/read nowhere.txt", project))
    await office.runner.run(await office.request("x", project, agent=Scripted(nothing, failed=True)))

    assert await office.states() == ["failed", "failed"]


async def test_an_agent_that_raises_fails_its_turn_and_what_it_did_is_said(
    office: Office, project: Path, caplog: pytest.LogCaptureFixture
):
    async def act(tools: Tools) -> None:
        await tools.write_file("a.txt", b"half\n")
        raise ZeroDivisionError("a secret")

    await office.runner.run(await office.request("x", project, agent=Scripted(act)))
    await office.delivery.idle()

    (said,) = office.platform.sent()
    assert said.startswith("✖ The agent failed (ZeroDivisionError)")
    assert "a secret" not in said
    assert "a.txt (new)" in said
    assert "a secret" in caplog.text
    assert await office.states() == ["failed"]
    assert await office.open_messages() == 0


async def test_a_refusal_of_the_engine_is_the_answer(office: Office, project: Path):
    async def act(tools: Tools) -> None:
        await tools.read_file("Makefile")
        raise ToolRefused("patch", "it names no file")

    await office.runner.run(await office.request("x", project, agent=Scripted(act)))
    await office.delivery.idle()

    assert office.platform.sent() == ["✖ patch: it names no file"]
    assert await office.states() == ["failed"]


async def test_a_stopped_turn_ends_its_command_and_is_stored_as_stopped(office: Office, project: Path):
    request = await office.request("$ echo $$ > pid; echo begun; sleep 1000; echo late > late.txt", project)
    async with anyio.create_task_group() as group:
        group.start_soon(office.runner.run, request)
        await office.wait_output("begun")
        assert office.runner.running(HERE) is not None

        assert await office.runner.stop(HERE)

        assert office.runner.running(HERE) is None
    await office.delivery.idle()

    assert await office.states() == ["stopped"]
    assert not (project / "late.txt").exists()
    assert office.platform.sent()[0].startswith("⏹ Stopped.")
    assert await office.open_messages() == 0
    turn = await office.memory.turns.head(request.session.id)
    assert turn is not None
    used = (await office.memory.messages.of_turn(turn.id))[1]
    assert "begun" in used.content, "what the command said until then is kept"
    with pytest.raises(ProcessLookupError):
        os.kill(pid_in(project), 0)


async def test_a_stopped_turn_begins_no_further_tool(office: Office, project: Path):
    async def act(tools: Tools) -> None:
        await tools.terminal("echo begun; sleep 1000")
        await tools.write_file("late.txt", b"late")

    async with anyio.create_task_group() as group:
        group.start_soon(office.runner.run, await office.request("x", project, agent=Scripted(act)))
        await office.wait_output("begun")
        await office.runner.stop(HERE)

    assert not (project / "late.txt").exists()
    assert await office.states() == ["stopped"]


async def test_an_agent_that_swallows_its_end_still_cannot_write(office: Office, project: Path):
    kept: list[Tools] = []

    async def act(tools: Tools) -> None:
        kept.append(tools)

    await office.runner.run(await office.request("x", project, agent=Scripted(act)))

    with pytest.raises(TurnOver, match="Nothing was done"):
        await kept[0].write_file("late.txt", b"late")
    assert not (project / "late.txt").exists()


async def test_stop_does_not_wait_for_ever(office: Office, project: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gateway.turns.running.STOP_LIMIT_S", 0.01)
    begun, may_end = anyio.Event(), anyio.Event()

    async def act(tools: Tools) -> None:
        del tools
        begun.set()
        with anyio.CancelScope(shield=True):
            await may_end.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(office.runner.run, await office.request("x", project, agent=Scripted(act)))
        await begun.wait()

        assert await office.runner.stop(HERE)

        assert office.runner.running(HERE) is not None
        may_end.set()


async def test_stop_says_when_nothing_runs(office: Office, project: Path):
    assert await office.runner.stop(HERE) is False
    await office.runner.run(await office.request("/read Makefile", project))
    assert await office.runner.stop(HERE) is False


async def test_a_turn_after_a_stopped_one_works(office: Office, project: Path):
    async with anyio.create_task_group() as group:
        group.start_soon(office.runner.run, await office.request("$ echo begun; sleep 1000", project))
        await office.wait_output("begun")
        await office.runner.stop(HERE)

    await office.runner.run(await office.request("/write a.txt\nhello\n", project))

    assert (project / "a.txt").read_text() == "hello\n"
    assert await office.states() == ["stopped", "done"]


async def test_a_turn_cut_off_by_the_end_of_the_service_is_stored_as_interrupted(office: Office, project: Path):
    async with anyio.create_task_group() as group:
        group.start_soon(office.runner.run, await office.request("$ echo begun; sleep 1000; touch late", project))
        await office.wait_output("begun")
        group.cancel_scope.cancel()
    await office.delivery.idle()

    assert await office.states() == ["interrupted"]
    assert not (project / "late").exists()
    assert "shut down" in office.platform.sent()[0]
    assert await office.open_messages() == 0


async def test_a_workspace_has_one_turn_at_a_time_and_the_one_who_waits_is_told(office: Office, project: Path):
    async with anyio.create_task_group() as group:
        group.start_soon(office.runner.run, await office.request("$ echo begun; sleep 1000", project))
        await office.wait_output("begun")
        group.start_soon(office.runner.run, await office.request("/write a.txt\nhello\n", project, place=THERE))
        await office.platform.wait_for(lambda seen: bool(seen.sent(THERE)))
        assert not (project / "a.txt").exists()
        assert office.runner.running(THERE) is None

        await office.runner.stop(HERE)
    await office.delivery.idle()

    assert office.platform.sent(THERE)[0].startswith("⏳ Waiting: the console chat here is at work")
    assert (project / "a.txt").exists()
    assert await office.states() == ["stopped", "done"]


async def test_a_turn_that_waits_for_its_workspace_can_be_stopped(office: Office, project: Path):
    async with anyio.create_task_group() as group:
        group.start_soon(office.runner.run, await office.request("$ echo begun; sleep 1000", project))
        await office.wait_output("begun")
        group.start_soon(office.runner.run, await office.request("/write a.txt\nhello\n", project, place=THERE))
        await office.platform.wait_for(lambda seen: bool(seen.sent(THERE)))

        assert await office.runner.stop(THERE)
        await office.platform.wait_sent("⏹ Stopped before it began.", place=THERE)
        await office.runner.stop(HERE)

    assert not (project / "a.txt").exists()
    assert await office.states() == ["stopped"]
    assert await office.open_messages() == 0


async def test_turns_in_other_workspaces_run_beside(office: Office, project: Path, tmp_path: Path):
    """Each waits for what the other writes."""
    other = tmp_path / "other"
    wait_for = "touch {0}; until [ -e {1} ]; do sleep 0.01; done; echo seen"
    async with anyio.create_task_group() as group:
        for path, place, mine, theirs in (
            (project, HERE, "here", other / "there"),
            (other, THERE, "there", project / "here"),
        ):
            text = "$ " + wait_for.format(mine, theirs)
            group.start_soon(office.runner.run, await office.request(text, path, place=place, guarded=False))

    assert await office.states() == ["done", "done"]


async def test_so_many_turns_run_at_once(clean_home: Path, project: Path, tmp_path: Path):
    async with open_office(clean_home, max_turns=1) as office, anyio.create_task_group() as group:
        other = tmp_path / "other"
        group.start_soon(office.runner.run, await office.request("$ echo begun; sleep 1000", project, guarded=False))
        await office.wait_output("begun")
        second = await office.request("/write a.txt\nhello\n", other, place=THERE, guarded=False)
        group.start_soon(office.runner.run, second)
        with anyio.fail_after(30):
            while office.runner._slots.statistics().tasks_waiting == 0:
                await anyio.lowlevel.checkpoint()
        assert office.runner.running(THERE) is None

        await office.runner.stop(HERE)
        await office.platform.wait_for(lambda seen: bool(seen.sent(THERE)))

        assert (other / "a.txt").exists()


async def test_a_chat_that_another_process_answers_is_busy(office: Office, project: Path):
    request = await office.request("/write a.txt\nhello\n", project)
    async with open_memory(str(office.home)) as other:
        await other.turns.begin(request.session.id, "theirs")

        await office.runner.run(request)
    await office.delivery.idle()

    assert office.platform.sent() == ["busy: another Takeback process runs a turn in this chat."]
    assert not (project / "a.txt").exists()
    assert await office.open_messages() == 0


async def test_an_agent_is_told_what_was_taken_back_since_its_last_turn(office: Office, project: Path):
    agent = Scripted(nothing)
    first = await office.request("one", project, agent=agent)
    await office.runner.run(first)
    await office.memory.restores.plan(
        first.session.id, token="t", kind=RestoreKind.UNDO, checkpoint_id=None, new_head=None
    )
    await office.memory.restores.complete("t", safety_id=None, note="one was taken back")

    notes = []
    for text in ("two", "three"):
        await office.runner.run(await office.request(text, project, agent=agent))
        assert agent.context is not None
        notes.append(list(agent.context.notes))

    assert notes == [["one was taken back"], []]


async def test_an_agent_reads_the_conversation_without_what_was_taken_back(office: Office, project: Path):
    """And without the turn it answers, whose text it has."""
    for text in ("/read Makefile", "/write gone.txt\nx"):
        await office.runner.run(request := await office.request(text, project))
    await office.memory.restores.plan(
        request.session.id, token="t", kind=RestoreKind.UNDO, checkpoint_id=None, new_head=1
    )
    await office.memory.restores.complete("t", safety_id=None, note="gone.txt was taken back")
    agent = Scripted(nothing)

    await office.runner.run(await office.request("go on", project, agent=agent))

    assert agent.context is not None
    history = await agent.context.history()
    assert [(message.role, message.content) for message in history if message.role is not Role.ASSISTANT] == [
        (Role.USER, "/read Makefile"),
        (Role.TOOL, "all:\n"),
        (Role.NOTE, "gone.txt was taken back"),
    ]
    assert not any("gone.txt" in str(message.arguments) for message in history)


async def test_an_agent_may_speak_and_show_progress_in_the_middle(office: Office, project: Path):
    class Talker(Scripted):
        async def answer(self, context: TurnContext) -> Answer:
            context.progress("thinking")
            await context.say(say("first this"))
            return Answer((say("then that"),))

    await office.runner.run(await office.request("x", project, agent=Talker(nothing)))
    await office.delivery.idle()

    words = [message.content for message in await office.memory.messages.of_turn(1)]
    assert office.platform.sent() == ["first this", "then that"]
    assert words == ["x", "first this", "then that"]


async def test_output_however_fast_reaches_progress_and_its_end_is_not_lost(office: Office, project: Path):
    request = await office.request("$ seq 1 200000; echo the end", project, guarded=False)

    await office.runner.run(request)
    await office.delivery.idle()

    shown = [text for what, _, text in office.platform.seen if what == "progress"]
    assert shown[0].startswith("terminal: seq 1 200000")
    assert shown[-1] == "", "progress is cleared before the answer"
    assert "the end" in office.platform.sent()[0] or "output.txt" in office.platform.sent()[0]


async def test_what_is_recorded_of_a_call_is_bounded(office: Office, project: Path):
    size = RECORDED_CHARACTERS + 10
    await office.runner.run(await office.request("/write a.txt\n" + "x" * size, project, guarded=False))

    (used,) = [
        message
        for message in await office.memory.messages.of_turn(1)
        if message.role is Role.TOOL and message.arguments is not None
    ]
    assert used.arguments is not None
    assert str(used.arguments["content"]).endswith("x… (10 characters not kept)")
    assert (project / "a.txt").stat().st_size == size


async def test_a_name_of_odd_bytes_goes_through(office: Office, project: Path):
    await office.runner.run(await office.request("/write odd \udcff.txt\nhello\n", project))

    assert (project / "odd \udcff.txt").read_text() == "hello\n"
    assert (await office.memory.turns.get(1)).text == "/write odd \udcff.txt\nhello\n"


async def test_places_of_one_name_on_two_platforms_run_apart(office: Office, project: Path, tmp_path: Path):
    slack = Place("slack", "here")
    async with anyio.create_task_group() as group:
        group.start_soon(office.runner.run, await office.request("$ echo begun; sleep 1000", project))
        await office.wait_output("begun")

        assert await office.runner.stop(slack) is False
        await office.runner.run(await office.request("/write a.txt\nx", tmp_path / "other", place=slack))
        await office.runner.stop(HERE)

    assert sorted(await office.states()) == ["done", "stopped"]
