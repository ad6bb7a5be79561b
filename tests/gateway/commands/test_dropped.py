"""A checkpoint that was dropped since takes nothing with it that was done with its help."""

from pathlib import Path

from tests.gateway.commands.kit import running_gateway, settings_for


async def test_redo_beside_a_nested_repository_does_without_the_checkpoint_that_was_restored(
    home: Path, app: Path
) -> None:
    async with running_gateway(home, settings_for(app, limits={"max_snapshots": 3})) as gateway:
        chat, other = gateway.chat(), gateway.chat("other")
        await chat.say("/write app.py\nagent\n")
        (app / "tool" / ".git").mkdir(parents=True)
        await chat.say("/rollback 1 app.py")
        assert (app / "app.py").read_text() == "one\ntwo\n"
        for number in range(2):
            await other.say(f"/write other.py\n{number}\n")

        said = await chat.say("/redo")

        assert (app / "app.py").read_text() == "agent\n"
        assert "  Restored: app.py" in said.lines
