"""Files that people send: saved in the workspace by their turn, and taken back with it."""

from pathlib import Path

from adapters.contract import Attachment, Inbound
from gateway.agents.base import TurnContext
from tests.gateway.agent_kit import AGENT, KIND, Scripted
from tests.gateway.commands.kit import Answered, Chat, running_gateway, settings_for

NOTES, PICTURE = Attachment("notes.txt", b"mine\n"), Attachment("a b.png", b"\x89PNG\xff\x00")


async def bring(chat: Chat, text: str, *files: Attachment, event_id: str = "files") -> Answered:
    """Send a message with files and wait for all that is said to it."""
    await chat.gateway.hub.receive(Inbound(chat.place, "ann", event_id, text, files=files))
    return await chat.answer_to(event_id)


async def test_files_without_a_word_are_saved_and_undone_like_any_change(chat: Chat, app: Path):
    said = await bring(chat, "", NOTES, PICTURE)

    assert said.lines[:2] == ["📎 Saved as inbox/1-notes.txt", "📎 Saved as inbox/1-a b.png"]
    assert said.lines[2].startswith("✎ 2 files")
    assert [button.label for button in said.buttons] == ["Diff", "Undo"]
    assert (app / "inbox" / "1-notes.txt").read_bytes() == b"mine\n"
    assert (app / "inbox" / "1-a b.png").read_bytes() == PICTURE.content

    undone = await chat.say("/undo")

    assert undone.text.startswith("✅ Took back the last turn: 📎 notes.txt, a b.png")
    assert not (app / "inbox" / "1-notes.txt").exists()


async def test_a_file_of_a_later_message_takes_no_earlier_ones_place(chat: Chat, app: Path):
    await bring(chat, "", NOTES, event_id="first")
    await bring(chat, "", Attachment("notes.txt", b"newer\n"), event_id="second")

    assert [path.name for path in sorted((app / "inbox").iterdir())] == ["1-notes.txt", "2-notes.txt"]


async def test_the_words_beside_a_file_are_carried_out_with_it_in_place(chat: Chat):
    said = await bring(chat, "$ cat inbox/*", NOTES)

    assert [reply.plain_text.splitlines()[0] for reply in said.replies] == ["📎 Saved as inbox/1-notes.txt", "mine"]


async def test_another_agent_is_told_where_the_files_are(home: Path, app: Path):
    async def repeat(context: TurnContext) -> str:
        return context.text

    async with running_gateway(home, settings_for(app, agent=AGENT), agents={KIND: Scripted(repeat)}) as gateway:
        said = await bring(gateway.chat(), "look at this", NOTES)

    assert said.replies[-1].plain_text == (
        "look at this\n\n(Files that came with this message are saved as: inbox/1-notes.txt)"
    )


async def test_a_file_that_cannot_be_saved_is_said(chat: Chat, app: Path):
    (app / "inbox").write_text("in the way")

    said = await bring(chat, "", NOTES)

    assert said.text.startswith("✖ ")
    assert (app / "inbox").read_text() == "in the way"
