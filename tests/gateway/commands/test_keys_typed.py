"""A key that a person types: the command runs with it, and nothing that is kept or shown holds it."""

from pathlib import Path

import anyio

from gateway.blotting import MARK
from tests.gateway.commands.kit import Chat, running_gateway, settings_for

KEY = "sk-" + "a1B2c3D4" * 5
TYPED = f'$ echo "Authorization: Bearer {KEY}" | tee sent.txt'


async def test_a_command_runs_with_a_key_that_nothing_keeps_or_shows(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app)) as gateway:
        chat = gateway.chat()
        answered = await chat.say(TYPED)
        listed = await chat.say("/rollback")
        status = await chat.say("/status")
        everywhere = await chat.say("/status all")

    assert (app / "sent.txt").read_text() == f"Authorization: Bearer {KEY}\n"
    assert answered.lines[0] == f"Authorization: Bearer {MARK}"
    assert f'before terminal: echo "Authorization: Bearer {MARK}" | tee sent.txt' in listed.text
    said = [answered, listed, status, everywhere]
    assert [one.text for one in said if KEY in one.text] == []
    assert [text for text in gateway.platform.shown if KEY in text] == []
    kept = [path async for path in anyio.Path(home).rglob("*") if await path.is_file()]
    assert len(kept) > 5
    assert [path for path in kept if KEY.encode() in await path.read_bytes()] == []


async def test_what_held_a_key_is_not_run_again_with_something_else_in_its_place(chat: Chat, app: Path) -> None:
    await chat.say(TYPED)

    said = await chat.say("/retry")

    assert said.text.startswith("Nothing was done: the message of the last turn held what looks like a key")
    assert KEY in (app / "sent.txt").read_text()
    assert "Took back the last turn" in (await chat.say("/undo")).text


async def test_a_secret_of_the_gateway_is_in_no_answer_and_in_no_file_that_is_sent(home: Path, app: Path) -> None:
    (app / "notes.md").write_text("it is xyzzy-magic\n" + "more\n" * 3_000)
    async with running_gateway(home, settings_for(app), secrets=["xyzzy-magic"]) as gateway:
        answered = await gateway.chat().say("/run --full cat notes.md; echo caf\\\\351 > latin")

    assert "xyzzy" not in answered.text
    (file,) = answered.files
    assert file.content.startswith(f"it is {MARK}\n".encode())
