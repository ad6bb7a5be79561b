"""What a message is taken for."""

import pytest

from gateway.commands.base import Order
from gateway.commands.checkpoints import ShowState, TurnOff, TurnOn
from gateway.commands.diff import SessionDiff, TurnDiff
from gateway.commands.overview import Overview
from gateway.commands.redo import Redo
from gateway.commands.rollback import GoBack, Preview, ShowList
from gateway.commands.session import New, Status, Stop
from gateway.commands.table import COMMANDS
from gateway.commands.undo import Retry, Undo
from gateway.commands.workspace import ShowWorkspaces, Switch
from gateway.router import Ignored, Mistyped, Routed, ToAgent, ToCommand, route


def routed(text: str, *, agent_kind: str = "direct") -> Routed:
    return route(text, agent_kind=agent_kind)


def invocation(text: str) -> object:
    found = routed(text)
    assert isinstance(found, ToCommand), found
    return found.invocation


def complaint(text: str, *, agent_kind: str = "direct") -> str:
    found = routed(text, agent_kind=agent_kind)
    assert isinstance(found, Mistyped), found
    return found.sentence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/rollback", ShowList()),
        ("  /rollback  ", ShowList()),
        ("/rollback list", ShowList()),
        ("/ROLLBACK", ShowList()),
        ("/rollback@MyBot", ShowList()),
        ("!rollback", ShowList()),
        ("/rollback 3", GoBack("3")),
        ("/rollback@mybot 2", GoBack("2")),
        ("!rollback 1", GoBack("1")),
        ("/rollback\n2", GoBack("2")),
        ("/rollback 4270A8C", GoBack("4270A8C")),
        ("/rollback 3 --all", GoBack("3", everything=True)),
        ("/rollback --all 3", GoBack("3", everything=True)),
        ("/rollback 3 —all", GoBack("3", everything=True)),
        ("/rollback 3 a.txt 'my file.txt'", GoBack("3", ("a.txt", "my file.txt"))),
        ("/rollback 3 --all a.txt", GoBack("3", ("a.txt",), everything=True)),
        ("/rollback 3 -- -rf --all", GoBack("3", ("-rf", "--all"))),
        ("/rollback 3 -", GoBack("3", ("-",))),
        ("/rollback 3 diff", GoBack("3", ("diff",))),
        (
            "/rollback 3 '*.txt' ':(glob)src/**' ':(exclude)tool'",
            GoBack("3", ("*.txt", ":(glob)src/**", ":(exclude)tool")),
        ),
        ("/rollback 3 a\\ b", GoBack("3", ("a b",))),
        ("/rollback diff 2", Preview("2")),
        ("/rollback diff abcd src", Preview("abcd", ("src",))),
        ("/rollback diff 2 --all", Preview("2", everything=True)),
        ("/rollback undo", Redo()),
        ("/redo", Redo()),
        ("/undo", Undo()),
        ("/undo #57", Undo(57)),
        ("/retry", Retry()),
        ("/diff", TurnDiff()),
        ("/diff #57", TurnDiff(57)),
        ("/diff session", SessionDiff()),
        ("/checkpoints", ShowState()),
        ("/checkpoints on", TurnOn()),
        ("/checkpoints OFF", TurnOff()),
        ("/new", New()),
        ("/stop", Stop()),
        ("/status", Status()),
        ("/status All", Overview()),
        ("/workspace", ShowWorkspaces()),
        ("/workspace app", Switch("app")),
    ],
)
def test_command_is_understood(text: str, expected: object) -> None:
    assert invocation(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "$ ls",
        "/etc/hosts looks odd",
        "/usr",
        "!nice work",
        "! rollback",
        "rollback 2",
        "3 / rollback",
        "/",
        "//rollback",
        "/rollback/2",
        "/write notes.md\nhello",
        "/WRITE notes.md\nhello",
        "/read notes.md",
        "/patch\n--- a/x",
        "/run make",
    ],
)
def test_message_for_the_agent_keeps_every_character(text: str) -> None:
    if text == "/usr":
        assert "There is no command /usr" in complaint(text)
        return
    assert routed(f"{text} \n") == ToAgent(f"{text} \n")


@pytest.mark.parametrize("text", ["", "  \n "])
def test_nothing_is_ignored(text: str) -> None:
    assert routed(text) == Ignored()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/rolback", "There is no command /rolback. Did you mean /rollback? /help lists them."),
        ("/wirte a", "Did you mean /write?"),
        ("/xyzzy", "There is no command /xyzzy. /help lists them."),
        ("/rollback udno", "Did you mean /rollback undo?"),
        ("/rollback notes.md", "neither a number from the list nor the beginning of an id"),
        ("/rollback 2 --everything", "/rollback does not know --everything."),
        ("/rollback 2 --al", "Did you mean --all?"),
        ("/rollback 2 -x", "A path that begins with a dash goes after --"),
        ("/rollback --all", "Which checkpoint?"),
        ("/rollback diff", "Which checkpoint?"),
        ("/rollback diff notes.md", "notes.md is neither a number"),
        ("/rollback undo 2", "/rollback undo takes nothing more"),
        ("/rollback undo --all", "/rollback undo takes nothing more"),
        ("/rollback list 2", "/rollback list takes nothing more"),
        ("/rollback 2 'open", "a quote or backslash is left open"),
        ("/rollback 2 open\\", "a quote or backslash is left open"),
        ("/rollback ''", "neither a number"),
        ("/undo 3", "To go back further: /rollback"),
        ("/redo now", "/redo takes nothing after it"),
        ("/diff sesion", "Did you mean /diff session?"),
        ("/diff 3", "/rollback diff N"),
        ("/checkpoints maybe", "takes on, off or nothing, not maybe"),
        ("/stop it", "/stop takes nothing after it"),
        ("/help rolback", "Did you mean /help rollback?"),
    ],
)
def test_mistake_is_named_with_what_to_type_instead(text: str, says: str) -> None:
    assert says in complaint(text)


@pytest.mark.parametrize("word", ["write", "read", "patch", "run"])
def test_direct_agents_words_belong_to_it_alone(word: str) -> None:
    assert f"/{word} is for the direct agent; this workspace's agent is model" in complaint(
        f"/{word} x", agent_kind="model"
    )


@pytest.mark.parametrize(
    ("order", "texts"),
    [
        (Order.IMMEDIATE, ["/stop", "/status", "/help", "/help undo", "/whoami"]),
        (Order.BESIDE, ["/rollback", "/rollback diff 1", "/diff", "/diff session", "/checkpoints", "/workspace"]),
        (Order.BESIDE, ["/status all"]),
        (
            Order.ALONE,
            [
                "/rollback 1",
                "/rollback 1 a",
                "/rollback undo",
                "/redo",
                "/undo",
                "/retry",
                "/new",
                "/workspace app",
            ],
        ),
    ],
)
def test_commands_are_ordered_by_what_they_may_change(order: Order, texts: list[str]) -> None:
    assert {text: routed(text).invocation.order for text in texts} == dict.fromkeys(texts, order)


def test_table_has_each_name_once_and_a_usage_for_every_command() -> None:
    names = [command.name for command in COMMANDS]

    assert len(names) == len(set(names))
    assert all(command.summary and command.usages for command in COMMANDS)
    assert all(usage.form.startswith(f"/{command.name}") for command in COMMANDS for usage in command.usages)
