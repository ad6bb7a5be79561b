"""A stranger is admitted: from the first refusal to the first answer, and out again."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from adapters.contract import Inbound, MenuEntry, Place
from gateway.access.admission import Rules
from gateway.access.welcomes import Welcomes
from gateway.commands.menu import menu
from gateway.commands.table import COMMANDS
from tests.gateway.commands.kit import PLATFORM, Chat, Gateway, running_gateway, settings_for

BOSS = Rules(admins=frozenset({"boss"}), people=frozenset({"ann"}))
STRANGE = Place(PLATFORM, "stranger's")


@pytest.fixture
async def strict(home: Path, app: Path) -> AsyncIterator[Gateway]:
    """A gateway that admits a boss and ann."""
    async with running_gateway(home, settings_for(app), rules=BOSS) as gateway:
        yield gateway


async def asked(gateway: Gateway, event_id: str = "first") -> str:
    """Let a stranger write in private, and return the code they are given."""
    reception = await gateway.hub.receive(Inbound(STRANGE, "sam", event_id, "hello", private=True))
    assert reception.notice is not None
    return reception.notice.split("/pair ")[1].split()[0]


async def said(chat: Chat, text: str, user: str) -> str:
    return (await chat.answer_to(await chat.send(text, user=user))).text


async def test_a_stranger_is_admitted_by_an_admin_told_and_heard_until_removed(strict: Gateway):
    chat, strangers = strict.chat("office"), Chat(strict, STRANGE)
    welcomes = Welcomes(strict.memory, strict.delivery, [PLATFORM])

    admitted = await said(chat, f"/pair {await asked(strict)}", "boss")
    await welcomes.tell()
    await welcomes.tell()
    told = (await strangers.told()).text
    heard = await said(strangers, "/whoami", "sam")
    await strict.memory.admissions.remove(PLATFORM, "sam")
    removed = await strict.hub.receive(Inbound(STRANGE, "sam", "after", "/status", private=True))

    assert admitted.startswith("✅ Admitted test:sam as user.")
    assert told == "✅ You are admitted. Write to the agent; /help lists the commands."
    assert heard.endswith("Admitted as: user")
    assert removed.notice is None, "they were told how to be admitted a moment ago"
    assert len(strict.platform.sent) == 3


async def test_an_admission_that_a_crash_cuts_off_is_answered_as_one(home: Path, app: Path, monkeypatch):
    settings = settings_for(app)
    async with running_gateway(home, settings, rules=BOSS) as gateway:
        monkeypatch.setattr(gateway.memory.inbox, "done", lambda *_: anyio.sleep_forever())
        code = await asked(gateway)
        event_id = await gateway.chat().send(f"/pair {code}", user="boss")
        with anyio.fail_after(30):
            while not await gateway.memory.admissions.all():
                await anyio.lowlevel.checkpoint()

    async with running_gateway(home, settings, rules=BOSS) as gateway:
        await gateway.hub.idle()
        await gateway.delivery.idle()
        said = [message.plain_text for message in gateway.platform.sent if message.reply_to == event_id]

    assert [text.startswith("✅ Admitted test:sam as user.") for text in said] == [True]


async def test_an_admin_by_code_may_admit_others(strict: Gateway):
    assert "as admin" in await said(strict.chat(), f"/pair {(await asked(strict)).lower()} Admin", "boss")

    code = await strict.memory.admissions.issue(STRANGE, "max")

    assert "Admitted test:max as user" in await said(strict.chat(), f"/pair {code}", "sam")


async def test_who_is_no_admin_admits_nobody(strict: Gateway):
    code = await asked(strict)

    assert await said(strict.chat(), f"/pair {code}", "ann") == "/pair is for admins alone."

    assert await strict.memory.admissions.all() == []


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("/pair ABCD2345", "No such code is open: codes are good for 10 minutes and once."),
        ("/pair", "/pair takes the code of 8 characters"),
        ("/pair ABC", "/pair takes the code of 8 characters"),
        ("/pair ABCD2345 admin now", "/pair takes the code of 8 characters"),
        ("/pair ABCD2345 king", "A role is user or admin, not king: /pair ABCD2345 admin"),
    ],
)
async def test_a_mistake_is_said(strict: Gateway, typed: str, answer: str):
    assert (await said(strict.chat(), typed, "boss")).startswith(answer)


def test_the_menu_has_every_command_once_and_knows_those_of_admins():
    entries = menu()

    assert [entry.name for entry in entries] == [command.name for command in COMMANDS]
    assert MenuEntry("pair", "Admit somebody by the code they were given", admin_only=True) in entries
    assert [entry.name for entry in entries if entry.admin_only] == ["pair"]
