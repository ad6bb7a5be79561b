"""A checkpoint that was dropped since takes nothing with it that was done with its help."""

import shutil
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


async def test_deleted_store_is_said_also_where_no_list_was_shown(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app)) as gateway:
        chat = gateway.chat()
        await chat.say("/write app.py\nagent\n")
        shutil.rmtree(home / "checkpoints" / "store")

        listed = await chat.say("/rollback")
        chosen = await chat.say("/rollback 1")
        shown = await chat.say("/diff")
        undone = await chat.say("/undo")

        assert listed.text.startswith(f"There are no checkpoints of {app} any more: they were cleared, deleted or ")
        assert chosen.text.startswith("Checkpoint 1 is gone: the store holds no checkpoint of this workspace any more.")
        assert shown.text.startswith("What the turn changed is not known any more, as its checkpoint is gone: /write")
        assert "Only the conversation moved: the store holds no checkpoint of this workspace any more" in undone.text
        assert (app / "app.py").read_text() == "agent\n"


async def test_diff_of_a_turn_whose_checkpoint_was_dropped_does_not_say_that_it_changed_nothing(
    home: Path, app: Path
) -> None:
    async with running_gateway(home, settings_for(app, limits={"max_snapshots": 1})) as gateway:
        chat, other = gateway.chat(), gateway.chat("other")
        await chat.say("/write app.py\nagent\n")
        await other.say("/write other.py\nagent\n")

        assert (await chat.say("/diff")).text.startswith("What the turn changed is not known any more")
        assert "other.py" in (await other.say("/diff")).text
