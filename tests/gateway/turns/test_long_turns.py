"""Turns of an agent that works for a while: what it looks at, what is seen of it, how it is stopped and begun again."""

from pathlib import Path

import anyio
import pytest

from gateway.agents.base import Answer, TurnContext, Usage
from gateway.render import say
from gateway.state.messages import Role
from tests.gateway.agent_kit import AGENT, KIND
from tests.gateway.agent_kit import Scripted as Named
from tests.gateway.commands.kit import running_gateway, settings_for
from tests.gateway.gateway_kit import Office, open_office
from tests.gateway.platform_kit import HERE

SPENT = Usage(2, 1200, 34, 0.5)
TAKEN = "Σ 2 requests · 1,200 tokens in, 34 out · $0.5000"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "app"
    path.mkdir()
    (path / "Makefile").write_text("all:\n\techo needle\n")
    return path


@pytest.fixture
async def office(clean_home: Path):
    async with open_office(clean_home) as office:
        yield office


class Worker:
    """An agent that looks round, writes, and says what it took."""

    kind = "worker"
    own_word = True

    def __init__(self) -> None:
        self.results: list[str] = []

    async def answer(self, context: TurnContext) -> Answer:
        tools = context.tools
        for look in (
            tools.list_files(pattern="Make*"),
            tools.search("needle", "../app/Makefile"),
            tools.read_file("Makefile", last=1),
        ):
            self.results.append((await look).text)
        await tools.patch("Makefile\n<<<<<<< SEARCH\nall:\n=======\neverything:\n>>>>>>> REPLACE\n")
        context.stream("It is ")
        context.stream("It is done.")
        return Answer((say("first"), say("It is done.")), usage=SPENT)


async def test_looking_round_is_recorded_and_takes_no_checkpoint(office: Office, project: Path):
    async def look(context: TurnContext) -> str:
        return (await context.tools.search("needle")).text + (await context.tools.list_files()).text

    request = await office.request("look", project, agent=Named(look))
    await office.runner.run(request)
    await office.delivery.idle()

    calls = [message for message in await office.memory.messages.of_turn(1) if message.role is Role.TOOL]
    assert [(call.tool_name, call.arguments, call.ok) for call in calls] == [
        ("search", {"pattern": "needle", "path": "."}, True),
        ("list_files", {"path": "."}, True),
    ]
    assert office.platform.sent() == ["Makefile:2:\techo needle\nMakefile (18 bytes)\n"]
    assert await office.offload.checkpoints(request.workspace) == []
    assert await office.offload.session_diff(request.workspace, request.session.id) is None


async def test_the_last_reply_ends_with_what_was_changed_and_what_it_took(office: Office, project: Path):
    worker = Worker()
    await office.runner.run(await office.request("go", project, agent=worker))
    await office.delivery.idle()

    first, last = office.platform.sent()
    checkpoint = (await office.memory.turns.get(1)).checkpoint_id
    assert checkpoint is not None
    assert worker.results == ["Makefile (18 bytes)\n", "Makefile:2:\techo needle\n", "all:\n[lines 1 to 1]\n"]
    assert first == "first"
    assert last == f"It is done.\n\n✎ 1 file, +1/-1: Makefile · checkpoint {checkpoint[:7]}\n{TAKEN}\n"


async def test_what_goes_on_names_tool_and_file_and_the_answer_is_shown_as_it_grows(office: Office, project: Path):
    shown: list[str] = []
    office.delivery.progress = lambda _place, text: shown.append(text)  # type: ignore[method-assign]
    await office.runner.run(await office.request("go", project, agent=Worker()))

    assert shown == [
        "list_files: Make*",
        "search: needle in ../app/Makefile",
        "read_file: Makefile",
        "patch: Makefile",
        "\nIt is ",
        "\nIt is done.",
        "",
    ]


async def test_a_stop_among_calls_made_at_once_lets_none_of_the_others_run(office: Office, project: Path):
    async def calls(context: TurnContext) -> str:
        tools = context.tools
        async with anyio.create_task_group() as group:
            group.start_soon(tools.write_file, "first.txt", b"1\n")
            group.start_soon(tools.terminal, "echo begun; sleep 1000")
            group.start_soon(tools.write_file, "third.txt", b"3\n")
        return "never"

    agent = Named(calls)
    agent.own_word = True  # nobody is asked
    async with anyio.create_task_group() as group:
        group.start_soon(office.runner.run, await office.request("go", project, agent=agent))
        await office.wait_output("begun")
        await office.runner.stop(HERE)
    await office.delivery.idle()

    (said,) = office.platform.sent()
    assert said.startswith("⏹ Stopped.\n✎ 1 file, +1/-0: first.txt (new) · checkpoint ")
    assert not (project / "third.txt").exists()
    assert await office.states() == ["stopped"]


async def test_a_turn_that_was_stopped_while_it_answered_begins_again_from_where_it_began(
    tmp_path: Path, project: Path
):
    begun = anyio.Event()
    attempts: list[bool] = []

    async def slow(context: TurnContext) -> str:
        attempts.append((await context.tools.read_file("made.txt")).ok)
        await context.tools.write_file("made.txt", b"made\n")
        if len(attempts) == 1:
            context.stream("I am")
            begun.set()
            await anyio.sleep_forever()
        return "made at last"

    settings = settings_for(project, agent=AGENT)
    async with running_gateway(tmp_path / "takeback", settings, agents={KIND: Named(slow)}) as gateway:
        chat = gateway.chat()
        event = await chat.send("make it")
        with anyio.fail_after(30):
            await begun.wait()
        await chat.say("/stop")
        stopped = await chat.answer_to(event)
        again = await chat.say("/retry")

    assert stopped.text.startswith("⏹ Stopped.\n✎ 1 file, +1/-0: made.txt (new) · checkpoint ")
    assert again.replies[0].plain_text.startswith("✅ Took back the last turn: make it")
    assert again.replies[-1].plain_text.startswith("made at last")
    assert attempts == [False, False]
