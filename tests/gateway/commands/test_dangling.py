"""A checkpoint whose commit or name the store lost, as people see it."""

from pathlib import Path

from anyio import to_thread

from tests.gateway.commands.kit import Chat, Gateway


def lose_the_second(gateway: Gateway, app: Path, home: Path) -> None:
    """Take away the commit of the second checkpoint from the top."""
    lost = gateway.engine.checkpoints(gateway.engine.open_workspace(str(app)))[1].id
    (home / "checkpoints" / "store" / "objects" / lost[:2] / lost[2:]).unlink()


async def test_list_shows_the_others_and_says_that_one_is_damaged(
    gateway: Gateway, chat: Chat, app: Path, home: Path
) -> None:
    for content in ("three", "four", "five"):
        await chat.say(f"/write app.py\n{content}\n")
    await to_thread.run_sync(lose_the_second, gateway, app, home)

    listed = await chat.say("/rollback")
    turn = await chat.say("/write app.py\nsix\n")

    said = "1 checkpoint is damaged and left out of the list; nothing was deleted: gateway checkpoints verify"
    assert listed.lines[-1] == f"⚠ {said}"
    assert sum("before write_file" in line for line in listed.lines) == 2
    assert said in turn.text
    assert (await chat.say("/rollback 2")).text.startswith("✅")


async def test_only_checkpoint_whose_name_is_torn_is_said_to_every_command(
    gateway: Gateway, chat: Chat, home: Path
) -> None:
    await chat.say("/write app.py\nthree\n")
    [name] = (home / "checkpoints" / "store" / "refs").glob("takeback/*/checkpoints/00000001")
    name.write_text("")
    head = await chat.head()

    listed = await chat.say("/rollback")
    restored = await chat.say("/rollback 1")
    undone = await chat.say("/undo")

    assert listed.lines[0].startswith("No checkpoint of")
    assert "damaged and left out of the list" in listed.text
    assert restored.lines[0].startswith("There is no checkpoint 1 that can be read.")
    assert all("gateway checkpoints verify" in said.text for said in (listed, restored, undone))
    assert await chat.head() == head
    await chat.say("/write app.py\nfour\n")
    assert (await chat.say("/undo")).text.startswith("✅")
