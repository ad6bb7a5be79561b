"""``/diff``: what the last turn changed, or everything since the session began."""

import re
from pathlib import Path

from tests.gateway.commands.kit import Chat, running_gateway, settings_for


async def test_diff_shows_what_the_last_turn_changed_and_no_more(chat: Chat, app: Path) -> None:
    await chat.say("/write first.txt\nx\n")
    await chat.say("/write app.py\none\nTWO\n")
    (app / "notes.md").write_text("edited by hand\n")

    said = await chat.say("/diff")

    assert said.lines[0] == "The last turn changed this: /write app.py one TWO  (1 file, +1/-1)"
    assert "-two\n+TWO\n" in said.text
    assert "first.txt" not in said.text
    assert "notes.md" not in said.text


async def test_diff_of_a_turn_that_changed_nothing_says_so(chat: Chat) -> None:
    await chat.say("/write app.py\nx\n")
    await chat.say("/read app.py")

    assert (await chat.say("/diff")).text == "The last turn changed no file: /read app.py"


async def test_diff_without_a_turn_says_so(chat: Chat) -> None:
    assert (await chat.say("/diff")).text == "There is nothing to show: this session has no turn."


async def test_diff_button_shows_its_own_turn_also_later(chat: Chat) -> None:
    first = await chat.say("/write app.py\nfirst\n")
    await chat.say("/write app.py\nsecond\n")
    (button,) = [button for button in first.buttons if button.label == "Diff"]

    said = await chat.say(button.command)

    assert re.match(r"Turn #\d+ changed this: /write app\.py first  \(1 file, \+1/-2\)", said.text)
    assert "+first\n" in said.text


async def test_diff_of_another_chats_turn_is_not_shown(chat: Chat) -> None:
    first = await chat.say("/write app.py\nfirst\n")
    (button,) = [button for button in first.buttons if button.label == "Diff"]

    said = await chat.gateway.chat("other").say(button.command)

    assert "is not one of this session" in said.text


async def test_session_diff_shows_all_since_it_began_hand_edits_too(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\none\nTWO\n")
    await chat.say("/write new.txt\nx\n")
    (app / "notes.md").write_text("edited by hand\n")

    said = await chat.say("/diff session")

    assert said.lines[0] == "Since this session began  (3 files, +3/-2)"
    assert all(f"b/{file}" in said.text for file in ("app.py", "new.txt", "notes.md"))


async def test_second_session_shows_only_its_own_changes(chat: Chat, app: Path) -> None:
    await chat.say("/write first.txt\nx\n")
    await chat.say("/new")
    assert (await chat.say("/diff session")).text == "No file has changed since this session began."
    (app / "notes.md").write_text("edited by hand\n")
    await chat.say("/write second.txt\nx\n")

    said = await chat.say("/diff session")

    assert "second.txt" in said.text
    assert "notes.md" in said.text
    assert "first.txt" not in said.text


async def test_session_diff_outlives_the_checkpoints_it_began_with(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app, limits={"max_snapshots": 1})) as gateway:
        chat = gateway.chat()
        for number in range(3):
            await chat.say(f"/write app.py\n{number}\n")

        said = await chat.say("/diff session")

    assert "-one\n-two\n+2\n" in said.text


async def test_session_diff_before_anything_is_noted_says_why(chat: Chat) -> None:
    said = await chat.say("/diff session")

    assert "How the files were when this session began is not known" in said.text


async def test_long_diff_comes_as_a_file_of_its_turn(chat: Chat) -> None:
    await chat.say("/write big.txt\n" + "x" * 10_000 + "\n```\n")

    said = await chat.say("/diff")

    (whole,) = said.files
    assert re.fullmatch(r"turn-\d+\.diff", whole.name)
    assert b"+" + b"x" * 10_000 + b"\n+```\n" in whole.content
    assert max(map(len, said.lines)) < 300
