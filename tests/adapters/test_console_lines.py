"""The console for pipes: one message a line, one after another, plain text out."""

import os
import stat
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from adapters.console.attachments import KEPT_FILES, AttachmentDirectory
from adapters.console.lines import Lines
from adapters.console.pending import Speaker
from adapters.console.streams import LineReader, Writer
from adapters.contract import Attachment, Button, Part, Style

pytestmark = pytest.mark.anyio


@pytest.fixture
def talk(tmp_path, converse):
    """Feeds lines to the console; returns what it wrote, and the far side with what it received."""

    async def run(data: bytes, **answers):
        (tmp_path / "in").write_bytes(data)
        source = os.open(tmp_path / "in", os.O_RDONLY)
        target = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
        attachments = AttachmentDirectory(str(tmp_path / "attachments"))
        answering = await converse(Lines(LineReader(source), Writer(target), attachments, Speaker()), **answers)
        os.close(source)
        os.close(target)
        return (tmp_path / "out").read_bytes().decode(), answering

    return run


async def test_each_line_is_a_message_and_its_answer_comes_before_the_next_is_read(talk):
    async def slow(answering, inbound):
        await anyio.lowlevel.checkpoint()
        assert len(answering.received) == 1
        await answering.say(inbound, "slow")

    written, answering = await talk(b"slow\r\n\n  \nquick", slow=slow)

    assert written == "slow\nyou said quick\n"
    assert [message.text for message in answering.received] == ["slow", "quick"]


async def test_bytes_that_are_no_utf8_reach_the_gateway_and_are_shown_as_escapes(talk):
    written, answering = await talk(b"$ rm caf\xe9\n")

    assert os.fsencode(answering.received[0].text) == b"$ rm caf\xe9"
    assert written == "you said $ rm caf\\xe9\n"


async def test_what_would_steer_a_terminal_is_shown_as_an_escape(talk):
    async def odd(answering, inbound):
        await answering.say(inbound, "a\x1b[2Jb\x07\r\nc\td\x9b\u202e")

    written, _ = await talk(b"odd\n", odd=odd)

    assert written == "a\\x1b[2Jb\\x07\nc\td\\x9b\\u202e\n"


async def test_buttons_are_commands_to_type_and_files_are_saved(talk, tmp_path):
    async def show(answering, inbound):
        await answering.say(
            inbound,
            Part("head", Style.BOLD),
            files=(Attachment("../x y.diff", b"\xff whole"),),
            buttons=(Button("Diff", "/diff"), Button("Undo", "/undo")),
        )

    written, _ = await talk(b"show\n", show=show)

    (saved,) = (tmp_path / "attachments").iterdir()
    assert saved.read_bytes() == b"\xff whole"
    assert saved.name.endswith("-x_y.diff")
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert written == f"head\n  Diff: /diff   Undo: /undo\n  ../x y.diff is saved as {saved}\n"


async def test_a_file_that_cannot_be_saved_is_said(talk, tmp_path):
    (tmp_path / "attachments").write_text("in the way")

    async def show(answering, inbound):
        await answering.say(inbound, "head", files=(Attachment("a.diff", b""),))

    written, _ = await talk(b"show\n", show=show)

    assert written == "head\n  a.diff could not be saved: File exists\n"


def test_only_the_newest_attachments_are_kept(tmp_path):
    moments = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second) for second in range(1000))
    directory = AttachmentDirectory(str(tmp_path / "a"), now=lambda: next(moments))

    paths = [directory.save(Attachment("x", b"")) for _ in range(KEPT_FILES + 3)]

    assert sorted(os.listdir(tmp_path / "a")) == [os.path.basename(path) for path in paths[3:]]


async def test_it_ends_when_nobody_reads_the_output(tmp_path, converse):
    near_in, far_in = os.pipe()
    far_out, near_out = os.pipe()
    os.write(far_in, b"one\n")
    os.close(far_out)
    adapter = Lines(LineReader(near_in), Writer(near_out), AttachmentDirectory(str(tmp_path)), Speaker())

    async def one(answering, inbound):
        with pytest.raises(Exception, match="nobody reads"):
            await answering.say(inbound, "hello")

    answering = await converse(adapter, one=one)

    assert len(answering.received) == 1
    for descriptor in (near_in, far_in, near_out):
        os.close(descriptor)


async def test_a_notice_is_shown_and_the_next_line_is_read(talk):
    written, answering = await talk(b"refuse me\nnext\n")

    assert written == "You are\\x1b not admitted.\nyou said next\n"
    assert [message.text for message in answering.received] == ["next"]


async def test_of_many_buttons_the_first_are_shown(talk):
    async def show(answering, inbound):
        await answering.say(inbound, "list", buttons=tuple(Button(f"B{n}", f"/b {n}") for n in range(40)))

    written, _ = await talk(b"show\n", show=show)

    assert written == "list\n  B0: /b 0   B1: /b 1   B2: /b 2   B3: /b 3   B4: /b 4   B5: /b 5   …\n"
