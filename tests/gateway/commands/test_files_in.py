"""Files that people send: kept where no checkpoint takes them in, named to whoever answers, and known of later on."""

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from adapters.contract import Attachment, Inbound
from gateway.agents.base import TurnContext
from gateway.offload import Offload
from gateway.state.sent import KEPT, SentFile
from gateway.turns.enclosures import Enclosures, media_type
from gateway.turns.summary import PlainSummary
from gateway.turns.transcripts import read_transcript
from tests.gateway.agent_kit import AGENT, KIND, Scripted
from tests.gateway.commands.kit import Answered, Chat, running_gateway, settings_for

NOTES, PICTURE = Attachment("notes.txt", b"mine\n"), Attachment("a b.png", b"\x89PNG\r\n\x1a\n\xff\x00")
FOLDER = ".takeback/inbox"


async def bring(chat: Chat, text: str, *files: Attachment, event_id: str = "files") -> Answered:
    """Send a message with files and wait for all that is said to it."""
    await chat.gateway.hub.receive(Inbound(chat.place, "ann", event_id, text, files=files))
    return await chat.answer_to(event_id)


class Reader:
    """What an agent does that looks at each file that came, and at those of earlier messages."""

    def __init__(self) -> None:
        self.seen: list[list[tuple[str, str, bytes | None]]] = []
        self.earlier: list[Sequence[SentFile]] = []

    async def __call__(self, context: TurnContext) -> str:
        self.seen.append([(file.path, file.media_type, await context.read_sent(file)) for file in context.files])
        self.earlier.append([file for message in await context.history() for file in message.files])
        return context.text


async def test_files_without_a_word_are_kept_and_are_no_change_of_the_workspace(chat: Chat, app: Path):
    said = await bring(chat, "", NOTES, PICTURE)

    assert said.lines == [f"📎 Saved as {FOLDER}/1-notes.txt", f"📎 Saved as {FOLDER}/1-a b.png"]
    assert not said.buttons
    assert (app / FOLDER / "1-notes.txt").read_bytes() == b"mine\n"
    assert (app / FOLDER / "1-a b.png").read_bytes() == PICTURE.content
    assert (app / ".takeback" / ".gitignore").read_text() == "*\n"

    changed = await chat.say("$ echo x > new.txt")
    await chat.say("/rollback 1 --all")

    assert changed.lines[-1].startswith("✎ 1 file, +1/-0: new.txt (new)")
    assert sorted(os.listdir(app / FOLDER)) == ["1-a b.png", "1-notes.txt"]


async def test_a_file_of_a_later_message_takes_no_earlier_ones_place(chat: Chat, app: Path):
    await bring(chat, "", NOTES, event_id="first")
    await bring(chat, "", Attachment("notes.txt", b"newer\n"), event_id="second")

    assert sorted(os.listdir(app / FOLDER)) == ["1-notes.txt", "2-notes.txt"]


async def test_the_words_beside_a_file_are_carried_out_with_it_in_place(chat: Chat):
    said = await bring(chat, f"$ cat {FOLDER}/*", NOTES)

    assert [reply.plain_text.splitlines()[0] for reply in said.replies] == [
        f"📎 Saved as {FOLDER}/1-notes.txt",
        "mine",
    ]


async def test_an_agent_gets_what_came_with_and_without_words_and_knows_of_it_later(home: Path, app: Path):
    reader = Reader()
    async with running_gateway(home, settings_for(app, agent=AGENT), agents={KIND: Scripted(reader)}) as gateway:
        chat = gateway.chat()
        wordless = await bring(chat, "", NOTES, event_id="first")
        await bring(chat, "look at this", PICTURE, event_id="second")
        await chat.say("go on")

    notes = (f"{FOLDER}/1-notes.txt", "text/plain", b"mine\n")
    picture = (f"{FOLDER}/2-a b.png", "image/png", PICTURE.content)
    assert wordless.text == "📎 notes.txt"
    assert reader.seen == [[notes], [picture], []]
    assert reader.earlier[2] == [SentFile(*notes[:2], 5), SentFile(*picture[:2], len(PICTURE.content))]


async def test_what_came_with_a_message_is_in_a_summary_and_in_an_export(chat: Chat, home: Path):
    await bring(chat, "$ ls", NOTES)
    memory = chat.gateway.memory
    (session,) = await memory.sessions.recent()

    summary = await PlainSummary().compact(await memory.messages.history(session.id), characters=2_000)
    transcript = await read_transcript(str(home / "gateway.db"), session.id)

    assert f"Turn 1: $ ls (sent along: {FOLDER}/1-notes.txt) | terminal ls: done" in summary
    assert transcript["turns"][0]["files"] == [
        {"path": f"{FOLDER}/1-notes.txt", "media_type": "text/plain", "size_bytes": 5}
    ]


async def test_a_retry_brings_the_files_along_and_so_does_its_own(home: Path, app: Path):
    reader = Reader()
    async with running_gateway(home, settings_for(app, agent=AGENT), agents={KIND: Scripted(reader)}) as gateway:
        chat = gateway.chat()
        await bring(chat, "look at this", NOTES)
        await chat.say("/retry")
        await chat.say("/retry")

    assert reader.seen == [[(f"{FOLDER}/1-notes.txt", "text/plain", b"mine\n")]] * 3
    assert reader.earlier == [[], [], []]


async def test_a_retry_without_a_model_names_files_that_came_alone_again(chat: Chat):
    await bring(chat, "", NOTES)

    said = await chat.say("/retry")

    assert said.replies[-1].plain_text == f"📎 Saved as {FOLDER}/1-notes.txt\n"


async def test_a_file_that_cannot_be_kept_is_said_and_not_known_of(home: Path, app: Path):
    reader = Reader()
    (app / ".takeback").write_text("in the way")
    async with running_gateway(home, settings_for(app, agent=AGENT), agents={KIND: Scripted(reader)}) as gateway:
        chat = gateway.chat()
        said = await bring(chat, "look", NOTES)
        await chat.say("and now")

    assert [reply.plain_text.split(":")[0] for reply in said.replies] == [f"✖ {FOLDER}/1-notes.txt", "look"]
    assert reader.seen == [[], []]
    assert reader.earlier[1] == []
    assert (app / ".takeback").read_text() == "in the way"


async def test_no_link_leads_a_file_out_of_the_workspace(chat: Chat, app: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (app / ".takeback").symlink_to(elsewhere)

    said = await bring(chat, "", NOTES)

    assert said.replies[0].plain_text.startswith("✖ ")
    assert list(elsewhere.iterdir()) == []


async def test_files_go_when_their_time_is_over_and_nothing_else_does(home: Path, app: Path):
    reader = Reader()
    async with running_gateway(home, settings_for(app, agent=AGENT), agents={KIND: Scripted(reader)}) as gateway:
        chat, memory = gateway.chat(), gateway.memory
        await bring(chat, "look", NOTES)
        (app / FOLDER / "1-own.txt").write_text("a person's own")
        began = memory.clock() - KEPT - timedelta(days=1)
        async with memory.database.transaction() as tx:
            await tx.execute("UPDATE turns SET started_at = ?", began.isoformat())
        enclosures = Enclosures(memory, Offload(gateway.engine))
        assert (await enclosures.expire(), await enclosures.expire()) == (1, 0)
        await chat.say("do you remember?")

    assert sorted(os.listdir(app / FOLDER)) == ["1-own.txt"]
    assert [file.name for file in reader.earlier[1]] == ["notes.txt"]


def test_what_a_file_is_is_told_by_its_content_before_its_name():
    assert media_type("a.jpg", PICTURE.content) == "image/png"
    assert media_type("a.png", b"no image\n") == "text/plain"
    assert media_type("a.png", b"\x00\xff") == "application/octet-stream"
    assert media_type("a.json", b"{}") == "application/json"
    assert media_type("a.md", b"# x\n") in {"text/markdown", "text/plain"}
    assert media_type("a.pdf", b"%PDF\xff") == "application/pdf"
    assert media_type("a.webp", b"RIFF\0\0\0\0WEBPVP8 ") == "image/webp"
