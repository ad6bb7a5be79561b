"""Questions before a tool runs: who is asked what, what an answer does, and that no answer is a no."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from adapters.contract import Inbound, Outbound
from engine.model import Understanding, Verdict
from gateway.access.admission import OWNED, Rules
from gateway.agents.base import TurnContext
from gateway.state.approvals import ApprovalState
from gateway.state.messages import Role
from gateway.state.turns import TurnState
from gateway.turns.approvals import WHOLE_CHARACTERS, Concern, concern_about
from tests.gateway.agent_kit import AGENT, KIND, Scripted, runs_what_it_is_told
from tests.gateway.commands.kit import Chat, Gateway, running_gateway, settings_for


@asynccontextmanager
async def asking_gateway(
    home: Path, app: Path, agent: Scripted | None = None, *, rules: Rules = OWNED, **settings: object
) -> AsyncIterator[Gateway]:
    """A gateway whose agent is no person's own word."""
    agents = {KIND: agent or Scripted(runs_what_it_is_told)}
    async with running_gateway(
        home, settings_for(app, **{"agent": AGENT, **settings}), agents=agents, rules=rules
    ) as gateway:
        yield gateway


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file beside the workspace."""
    path = tmp_path / "outside.txt"
    path.write_text("theirs\n")
    return path


def there(path: Path) -> bool:
    return path.exists()


async def states(gateway: Gateway) -> list[tuple[str, str | None]]:
    rows = await gateway.memory.database.fetch_all("SELECT state, answered_by FROM approvals ORDER BY id")
    return [(row["state"], row["answered_by"]) for row in rows]


async def asked(gateway: Gateway, number: int = 1) -> Outbound:
    return await gateway.platform.until_sent(f"❓ Question #{number}:")


READS = Understanding(Verdict.READ_ONLY, "only reads", ("/etc/hosts",), ("/etc/hosts",), background=False)
INSIDE = Understanding(Verdict.DESTRUCTIVE, "rm deletes f", ("f",), (), background=False)
BUILDS = Understanding(Verdict.UNKNOWN, "make is not known to be read-only", (), (), background=False)
LEAVES = Understanding(Verdict.UNKNOWN, "make is not known to be read-only", ("/usr",), ("/usr",), background=False)


@pytest.mark.parametrize(
    ("tool", "understood", "asked_at"),
    [
        ("read_file", None, ""),
        ("write_file", None, "all"),
        ("patch", None, "all"),
        ("terminal", READS, ""),
        ("terminal", INSIDE, "destructive all"),
        ("terminal", BUILDS, "destructive all"),
        ("terminal", LEAVES, "outside destructive all"),
    ],
)
def test_a_rule_asks_about_what_it_says_and_nothing_else(
    tool: str, understood: Understanding | None, asked_at: str
) -> None:
    rules = [rule for rule in ("off", "outside", "destructive", "all") if concern_about(rule, tool, understood)]

    assert rules == asked_at.split()


def test_a_command_is_asked_about_for_the_reason_it_was_understood_by() -> None:
    assert concern_about("outside", "terminal", LEAVES) == Concern("make is not known to be read-only", ("/usr",))


async def test_question_shows_the_command_and_why_and_an_answer_runs_it(home: Path, app: Path, outside: Path) -> None:
    async with asking_gateway(home, app) as gateway:
        chat = gateway.chat()
        event = await chat.send("rm ../outside.txt")
        question = await asked(gateway)
        status = (await chat.say("/status")).text
        assert there(outside)

        said = await chat.say("/approve 1")
        answered = await chat.answer_to(event)

        assert question.plain_text == (
            f"❓ Question #1: may the agent run this in {app}?\n"
            "rm ../outside.txt\n"
            "Why you are asked: rm deletes ../outside.txt.\n"
            "Outside the workspace: ../outside.txt\n"
            "Without an answer within 300 s it is not run. /approve 1 or /deny 1\n"
        )
        assert [(button.label, button.command) for button in question.buttons] == [
            ("Run", "/approve 1"),
            ("Deny", "/deny 1"),
        ]
        assert "Asks: question #1 waits for an answer: rm ../outside.txt" in status
        assert said.text == "✅ Approved, it runs now: question #1, rm ../outside.txt"
        assert not there(outside)
        assert "[no output]" in answered.text
        (approval,) = await gateway.memory.database.fetch_all("SELECT * FROM approvals")
        assert (approval["state"], approval["answered_by"]) == ("approved", "ann")
        assert (approval["subject"], approval["reason"]) == ("rm ../outside.txt", "rm deletes ../outside.txt")
        assert approval["asked_at"] < approval["answered_at"]


async def test_denied_command_is_not_run_and_the_agent_is_told(home: Path, app: Path, outside: Path) -> None:
    async with asking_gateway(home, app) as gateway:
        chat = gateway.chat()
        event = await chat.send("rm ../outside.txt")
        await asked(gateway)

        said = await chat.say("/deny")

        assert said.text == "🚫 Denied, it is not run: question #1, rm ../outside.txt"
        answered = (await chat.answer_to(event)).text
        assert "Not run: a person was asked and said no." in answered
        assert there(outside)
        head = await chat.head()
        assert head is not None
        _, call, _ = await gateway.memory.messages.of_turn(head)
        assert (call.tool_name, call.arguments, call.ok) == ("terminal", {"command": "rm ../outside.txt"}, False)
        assert await states(gateway) == [("denied", "ann")]


async def test_no_answer_in_time_is_a_no_and_is_said(home: Path, app: Path, outside: Path) -> None:
    async with asking_gateway(home, app, approval_timeout_s=0.05) as gateway:
        chat = gateway.chat()

        answered = await chat.say("rm ../outside.txt")

        assert "⌛ Nobody answered question #1 within 0.05 s, so this was not run: rm ../outside.txt" in answered.text
        assert "did not answer in time" in answered.text
        assert there(outside)
        assert await states(gateway) == [("expired", None)]
        late = await chat.say("/approve 1")
        assert late.text == "Question #1 got no answer in time, so nothing was run: rm ../outside.txt"


async def test_stop_while_a_question_waits_denies_it(home: Path, app: Path, outside: Path) -> None:
    async with asking_gateway(home, app) as gateway:
        chat = gateway.chat()
        event = await chat.send("rm ../outside.txt")
        await asked(gateway)

        said = await chat.say("/stop")

        assert said.text == ""
        assert "⏹ Stopped." in (await chat.answer_to(event)).text
        assert there(outside)
        assert await states(gateway) == [("denied", "ann")]
        head = await chat.head()
        assert head is not None
        assert (await gateway.memory.turns.get(head)).state is TurnState.STOPPED
        assert (await chat.say("/approve")).text == "No question waits for an answer here."


async def test_question_of_a_turn_that_was_cut_off_is_closed_with_its_buttons(
    home: Path, app: Path, outside: Path
) -> None:
    async with asking_gateway(home, app) as gateway:
        await gateway.chat().send("rm ../outside.txt")
        question = await asked(gateway)

    async with asking_gateway(home, app) as gateway:
        chat = gateway.chat()
        said = (await chat.say("/approve 1")).text
        pressed = await press(chat, question, "Run")

        assert said == "Question #1 is closed: its turn has ended, and nothing was run: rm ../outside.txt"
        assert pressed.spent
        assert pressed.notice is not None
        assert there(outside)
        assert await states(gateway) == [("closed", None)]


async def press(chat: Chat, message: Outbound, label: str, *, user: str = "ann"):
    (button,) = [button for button in message.buttons if button.label == label]
    chat.gateway.events += 1
    event = f"{chat.gateway.run}-{chat.gateway.events}"
    return await chat.gateway.hub.receive(Inbound(chat.place, user, event, "", pressed=button.token))


async def test_a_press_answers_and_uses_up_both_buttons(home: Path, app: Path, outside: Path) -> None:
    async with asking_gateway(home, app) as gateway:
        chat = gateway.chat()
        event = await chat.send("rm ../outside.txt")
        question = await asked(gateway)

        first = await press(chat, question, "Deny", user="bob")
        second = await press(chat, question, "Run")
        await chat.answer_to(event)

        assert first.spent
        assert second.notice is not None
        assert there(outside)
        assert await states(gateway) == [("denied", "bob")]


async def test_of_two_answers_the_first_counts(home: Path, app: Path, outside: Path) -> None:
    async with asking_gateway(home, app) as gateway:
        chat = gateway.chat()
        event = await chat.send("rm ../outside.txt")
        await asked(gateway)

        await chat.say("/deny 1")
        second = await chat.say("/approve #1")
        await chat.answer_to(event)

        assert second.text == "Question #1 was denied by ann already: rm ../outside.txt"
        assert there(outside)


async def test_calls_made_at_once_run_in_their_order_and_are_asked_about_one_by_one(
    home: Path, app: Path, outside: Path
) -> None:
    second = outside.with_name("second.txt")
    second.write_text("theirs\n")

    async def calls_at_once(context: TurnContext) -> str:
        tools = context.tools
        async with anyio.create_task_group() as group:
            group.start_soon(tools.terminal, "rm ../outside.txt && echo first >> order.txt")
            group.start_soon(tools.terminal, "rm ../second.txt && echo second >> order.txt")
            group.start_soon(tools.terminal, "echo third >> order.txt")
        return "all three"

    async with asking_gateway(home, app, Scripted(calls_at_once)) as gateway:
        chat = gateway.chat()
        event = await chat.send("go")
        await asked(gateway, 1)
        assert await states(gateway) == [("pending", None)]
        assert not there(app / "order.txt")

        assert (await chat.say("/deny")).text.startswith("🚫 Denied, it is not run: question #1, rm ../outside.txt")
        await asked(gateway, 2)
        assert (await chat.say("/approve")).text.startswith("✅ Approved, it runs now: question #2, rm ../second.txt")
        await chat.answer_to(event)
        (turn,) = await gateway.memory.turns.active((await gateway.memory.sessions.recent())[0].id)
        calls = [message for message in await gateway.memory.messages.of_turn(turn.id) if message.role is Role.TOOL]

    assert there(outside)
    assert not there(second)
    assert (app / "order.txt").read_text() == "second\nthird\n"
    assert [message.ok for message in calls] == [False, True, True]


async def test_another_chat_cannot_answer_and_mistakes_are_named(home: Path, app: Path, outside: Path) -> None:
    async with asking_gateway(home, app) as gateway:
        event = await gateway.chat("ann").send("rm ../outside.txt")
        await asked(gateway)

        for text, says in (
            ("/approve", "No question waits for an answer here."),
            ("/approve 1", "There is no question #1 in this chat."),
            ("/deny 99", "There is no question #99 in this chat."),
            ("/approve all", "/approve takes the number of a question, as in /approve 3, or nothing: the newest."),
            ("/deny -1", "/deny takes the number of a question"),
            ("/approve 1 2", "/approve takes the number of a question"),
        ):
            assert says in (await gateway.chat("bob").say(text)).text, text

        assert await states(gateway) == [("pending", None)]
        assert there(outside)
        await gateway.chat("ann").say("/deny")
        await gateway.chat("ann").answer_to(event)


async def test_nothing_is_hidden_by_length_or_by_characters(home: Path, app: Path, outside: Path) -> None:
    padding = "x" * 300
    sly = f"true {padding}\n\n\n\t\rrm ../outside.txt\x1b[2K\u202e"
    async with asking_gateway(home, app) as gateway:
        chat = gateway.chat()
        event = await chat.send(sly)

        question = (await asked(gateway)).plain_text

        assert f"true {padding}\n\n\n\t\\rrm ../outside.txt\\x1b[2K\\u202e\n" in question
        assert "⚠ It holds characters that cannot be shown; they stand escaped above.\n" in question
        await chat.say("/deny")
        await chat.answer_to(event)


async def test_command_too_long_to_be_read_is_not_run(home: Path, app: Path, outside: Path) -> None:
    async with asking_gateway(home, app) as gateway:
        said = await gateway.chat().say(f"rm ../outside.txt; : {'x' * WHOLE_CHARACTERS}")

        assert re.search(r"too long for that \(\d+ characters, at most 10000\)", said.text)
        assert there(outside)
        assert await states(gateway) == []


async def test_link_in_the_workspace_that_leads_outside_is_asked_about(home: Path, app: Path, outside: Path) -> None:
    (app / "way").symlink_to(outside.parent)
    async with asking_gateway(home, app) as gateway:
        event = await gateway.chat().send("rm way/outside.txt")

        assert "Outside the workspace: way/outside.txt\n" in (await asked(gateway)).plain_text
        await gateway.chat().say("/deny")
        await gateway.chat().answer_to(event)


@pytest.mark.parametrize("command", ["cat ../outside.txt", "echo new > app.py; rm notes.md", "ls > /dev/null"])
async def test_by_default_nobody_is_asked_about_reading_or_about_the_workspace(
    home: Path, app: Path, outside: Path, command: str
) -> None:
    async with asking_gateway(home, app) as gateway:
        await gateway.chat().say(command)

        assert await states(gateway) == []


async def test_workspace_may_ask_about_everything_that_changes(home: Path, app: Path) -> None:
    async def uses_every_tool(context: TurnContext) -> str:
        done = [
            await context.tools.read_file("app.py"),
            await context.tools.terminal("cat app.py"),
            await context.tools.write_file("new.py", b"new\n" * 300),
            await context.tools.patch("--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"),
            await context.tools.terminal("echo x > notes.md"),
        ]
        return " ".join(str(result.ok) for result in done)

    workspaces = {"app": {"path": str(app), "approvals": "all"}}
    async with asking_gateway(home, app, Scripted(uses_every_tool), workspaces=workspaces, approvals="off") as gateway:
        chat = gateway.chat()
        event = await chat.send("go")
        write = await asked(gateway, 1)
        await chat.say("/approve")
        patch = await asked(gateway, 2)
        await chat.say("/approve")
        shell = await asked(gateway, 3)
        await chat.say("/deny")
        answered = (await chat.answer_to(event)).text

    assert f"may the agent write new.py in {app}?\n" in write.plain_text
    assert "Why you are asked: it changes files.\n" in write.plain_text
    assert "whole in content.txt" in write.plain_text
    assert write.files[0].content == b"new\n" * 300
    assert "may the agent make this change" in patch.plain_text
    assert "-two\n+three\n" in patch.plain_text
    assert "echo x > notes.md" in shell.plain_text
    assert "True True True True False" in answered
    assert (app / "app.py").read_bytes() == b"one\nthree\n"
    assert (app / "notes.md").read_bytes() == b"mine\n"


async def test_what_a_person_typed_is_not_asked_about(home: Path, app: Path, outside: Path) -> None:
    async with running_gateway(home, settings_for(app, approvals="all")) as gateway:
        await gateway.chat().say("$ rm ../outside.txt")

        assert await states(gateway) == []
    assert not there(outside)


async def test_only_an_admin_answers_where_the_configuration_says_so(home: Path, app: Path, outside: Path) -> None:
    rules = Rules(people=frozenset({"ann"}), admins=frozenset({"eve"}))
    async with asking_gateway(home, app, rules=rules, approvers="admins") as gateway:
        chat = gateway.chat()
        event = await chat.send("rm ../outside.txt")
        question = await asked(gateway)
        await press(chat, question, "Run")
        refused = await chat.answer_to(await chat.send("/approve"))
        assert await states(gateway) == [("pending", None)]

        await press(chat, question, "Run", user="eve")
        await chat.answer_to(event)

        assert "Only an admin may answer.\n" in question.plain_text
        assert refused.text == "Only an admin may answer what an agent asks here. Nothing was answered."
        assert await states(gateway) == [("approved", "eve")]
        assert not there(outside)


async def test_question_that_was_asked_after_an_answer_came_is_not_what_it_answers(
    home: Path, app: Path, outside: Path
) -> None:
    async with asking_gateway(home, app) as gateway:
        chat = gateway.chat()
        inbox_id = await gateway.memory.inbox.accept(Inbound(chat.place, "ann", "early", "/approve"))
        event = await chat.send("rm ../outside.txt")
        await asked(gateway)

        assert await gateway.memory.approvals.pending(chat.place, seen_by=inbox_id) == []
        (pending,) = await gateway.memory.approvals.pending(chat.place)
        assert pending.state is ApprovalState.PENDING
        await chat.say("/deny")
        await chat.answer_to(event)
