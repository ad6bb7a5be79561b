"""What came with a message: a model is told where it is, and shown pictures."""

from pathlib import Path

from adapters.contract import Attachment, Inbound
from tests.gateway.agents.model.desk import chat_with
from tests.gateway.agents.model.server import ModelServer, Says

NOTES, PICTURE = Attachment("notes.txt", b"mine\n"), Attachment("a.png", b"\x89PNG\r\n\x1a\n\xff\x00")


async def test_files_are_named_and_pictures_are_shown_with_the_message_they_came_with(
    server: ModelServer, home: Path, app: Path
) -> None:
    server.will(Says("A picture."), Says("The same."))

    async with chat_with(server, home, app) as chat:
        await chat.gateway.hub.receive(Inbound(chat.place, "ann", "e", "what is it?", files=(NOTES, PICTURE)))
        await chat.answer_to("e")
        await chat.say("sure?")

    asked = (
        "what is it?\n\n(Sent along: .takeback/inbox/1-notes.txt (text/plain, 5 bytes), "
        ".takeback/inbox/1-a.png (image/png, 10 bytes))"
    )
    picture = "<image_url>" if server.wire == "openai" else "<image>"
    assert server.heard(0) == [("user", asked), ("user", picture)]
    assert server.heard(1) == [("user", asked), ("assistant", "A picture."), ("user", "sure?")]
