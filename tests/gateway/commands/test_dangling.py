"""A checkpoint whose commit the store lost, as people see it."""

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
