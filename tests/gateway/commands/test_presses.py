"""Buttons in a running gateway: pressed once, again, by others, after a restart, below a list that has moved on."""

from dataclasses import replace
from pathlib import Path

import pytest

from adapters.contract import Button, Inbound, Reception
from gateway.access import refusals
from gateway.access.admission import OWNED, Rules
from tests.gateway.commands.kit import Answered, Chat, running_gateway, settings_for

TEAM = Rules(people=frozenset({"ann", "bob"}), admins=frozenset({"eve"}))


async def press(chat: Chat, button: Button, *, event_id: str, user: str = "ann") -> Reception:
    """Press a button as the platform hands it on."""
    return await chat.gateway.hub.receive(Inbound(chat.place, user, event_id, "", pressed=button.token))


async def pressed(chat: Chat, button: Button, *, event_id: str, user: str = "ann") -> Answered:
    """Press a button and wait for all that is said to it."""
    assert await press(chat, button, event_id=event_id, user=user) == Reception()
    return await chat.answer_to(event_id)


def labelled(answered: Answered, label: str) -> Button:
    (button,) = [button for button in answered.buttons if button.label == label]
    return button


async def test_a_press_does_what_typing_the_command_does_and_can_be_undone(chat: Chat, app: Path):
    said = await chat.say("/write app.py\nagent\n")
    shown = await pressed(chat, labelled(said, "Diff"), event_id="p1")
    assert "+agent" in shown.text

    undone = await pressed(chat, labelled(said, "Undo"), event_id="p2")

    assert undone.text.startswith("✅ Took back the last turn: /write app.py agent")
    assert (app / "app.py").read_text() == "one\ntwo\n"


async def test_a_press_that_is_delivered_three_times_acts_once(chat: Chat, app: Path):
    for text in ("one", "two"):
        await chat.say(f"/write app.py\n{text}\n")
    said = await chat.say("/rollback")
    for _ in range(3):
        await press(chat, labelled(said, "Restore 2"), event_id="p1")

    answered = await chat.answer_to("p1")

    assert answered.text.count("✅ Restored") == 1
    assert (app / "app.py").read_text() == "one\ntwo\n"


async def test_every_entry_of_a_long_list_can_be_pressed(chat: Chat, app: Path):
    for number in range(8):
        await chat.say(f"/write app.py\n{number}\n")
    said = await chat.say("/rollback")
    assert len(said.buttons) == 16
    assert len({button.token for button in said.buttons}) == 16

    await pressed(chat, labelled(said, "Restore 8"), event_id="p1")

    assert (app / "app.py").read_text() == "one\ntwo\n"


async def test_a_restore_below_a_list_that_has_changed_is_asked_about_first(chat: Chat, app: Path):
    await chat.say("/write app.py\nfirst\n")
    said = await chat.say("/rollback")
    await chat.say("/write app.py\nsecond\n")

    asked = await pressed(chat, labelled(said, "Restore 1"), event_id="p1")
    before = (app / "app.py").read_text()
    restored = await pressed(chat, labelled(asked, "Restore"), event_id="p2")

    assert asked.text.startswith("The list has changed since it was shown; nothing was restored yet.")
    assert asked.text.endswith(": before write_file: app.py?\n")
    assert before == "second\n"
    assert restored.text.startswith("✅ Restored to checkpoint ")
    assert (app / "app.py").read_text() == "one\ntwo\n"


async def test_the_number_of_a_button_means_what_its_own_list_showed(chat: Chat, app: Path):
    await chat.say("/write app.py\nfirst\n")
    old = await chat.say("/rollback")
    await chat.say("/write app.py\nsecond\n")
    await chat.say("/rollback")

    asked = await pressed(chat, labelled(old, "Restore 1"), event_id="p1")

    assert labelled(asked, "Restore").command == labelled(old, "Restore 1").command
    await pressed(chat, labelled(asked, "Restore"), event_id="p2")
    assert (app / "app.py").read_text() == "one\ntwo\n"


async def test_a_button_works_after_a_restart(home: Path, app: Path):
    settings = settings_for(app)
    async with running_gateway(home, settings) as gateway:
        said = await gateway.chat().say("/write app.py\nagent\n")

    async with running_gateway(home, settings) as gateway:
        await pressed(gateway.chat(), labelled(said, "Undo"), event_id="p1")

    assert (app / "app.py").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("user", "notice"), [("bob", refusals.ANOTHERS_BUTTON), ("mallory", None), ("eve", "done"), ("ann", "done")]
)
async def test_a_button_is_pressed_by_its_person_and_admins_alone(home: Path, app: Path, user: str, notice: str | None):
    async with running_gateway(home, settings_for(app), rules=TEAM) as gateway:
        chat = gateway.chat()
        said = await chat.say("/write app.py\nagent\n")

        reception = await press(chat, labelled(said, "Undo"), event_id="p1", user=user)
        if notice == "done":
            await chat.answer_to("p1")

    assert (app / "app.py").read_text() == ("one\ntwo\n" if notice == "done" else "agent\n")
    if user == "mallory":
        assert "You are not admitted here" in (reception.notice or "")
    elif user == "bob":
        assert reception == Reception(notice)


async def test_a_button_is_of_no_use_in_another_chat(chat: Chat, app: Path):
    said = await chat.say("/write app.py\nagent\n")

    reception = await press(chat.gateway.chat("other"), labelled(said, "Undo"), event_id="p1")

    assert reception == Reception(refusals.ELSEWHERES_BUTTON)
    assert (app / "app.py").read_text() == "agent\n"


async def test_a_button_that_acts_once_says_so_and_then_that_it_has(chat: Chat):
    buttons = (Button("On", "/checkpoints on"), Button("Off", "/checkpoints off"))
    on, off = await chat.gateway.memory.buttons.mint(chat.place, buttons, once=True, group="q1")

    first = await press(chat, off, event_id="p1")
    again = await press(chat, off, event_id="p1")
    other = await press(chat, on, event_id="p2")
    await chat.answer_to("p1")

    assert (first, again) == (Reception(spent=True), Reception(spent=True))
    assert other == Reception(refusals.USED_BUTTON, spent=True)
    assert "off" in (await chat.say("/checkpoints")).text


async def test_who_is_removed_while_a_message_waits_is_refused_after_the_restart(home: Path, app: Path):
    settings = settings_for(app)
    async with running_gateway(home, settings, rules=OWNED) as gateway:
        await gateway.memory.inbox.accept(Inbound(gateway.chat().place, "ann", "waiting", "/write app.py\nx\n"))

    async with running_gateway(home, settings, rules=replace(TEAM, people=frozenset({"bob"}))) as gateway:
        answered = await gateway.chat().answer_to("waiting")

    assert answered.text == refusals.REMOVED
    assert (app / "app.py").read_text() == "one\ntwo\n"
