"""The machine's door keeps its form, whatever is written to it."""

import base64
import json
import os

import anyio
import pytest
from anyio import to_thread

from adapters.console.jsonl import JsonLines
from adapters.console.pending import Speaker
from adapters.console.streams import LineReader, Writer
from adapters.contract import Attachment, Button, Outbound, Part, Place, Reception, SendFailed, Style

pytestmark = pytest.mark.anyio


class Door:
    """A `JsonLines` between two pipes."""

    def __init__(self, **reader_options):
        near_in, self.far_in = os.pipe()
        self.far_out, near_out = os.pipe()
        self.adapter = JsonLines(LineReader(near_in, **reader_options), Writer(near_out), Speaker())
        self.near = [near_in, near_out]

    def write(self, data: bytes) -> None:
        os.write(self.far_in, data)

    def end(self) -> None:
        os.close(self.far_in)

    def lines(self) -> list[dict]:
        """What was written, once the near side is closed."""
        for descriptor in self.near:
            os.close(descriptor)
        with open(self.far_out, "rb") as output:
            data = output.read()
        assert data.isascii()
        assert not data or data.endswith(b"\n")
        return [json.loads(line) for line in data.splitlines()]


@pytest.fixture
def door():
    return Door()


async def test_a_reply_and_then_done_answer_a_message(door, converse):
    door.write(b'{"text": "hello", "chat": "a", "user": "ann"}\n')
    door.end()

    answering = await converse(door.adapter)

    assert [(message.place.adapter, message.place.chat, message.user) for message in answering.received] == [
        ("console", "a", "ann")
    ]
    assert door.lines() == [
        {"chat": "a", "text": "you said hello", "files": [], "buttons": []},
        {"chat": "a", "done": True},
    ]


async def test_without_names_chat_and_user_are_local(door, converse):
    door.write(b'{"text": "hello"}')
    door.end()

    answering = await converse(door.adapter)

    assert (answering.received[0].place.chat, answering.received[0].user) == ("local", "local")
    assert door.lines()[-1] == {"chat": "local", "done": True}


async def test_a_reply_carries_files_and_buttons(door, converse):
    async def show(answering, inbound):
        await answering.say(
            inbound,
            "Changed:",
            Part("+1\n", Style.DIFF),
            "end",
            files=(Attachment("a.diff", "é\n".encode()), Attachment("b.bin", b"\xff\x00")),
            buttons=(Button("Undo", "/undo"),),
        )

    door.write(b'{"text": "show"}\n')
    door.end()

    await converse(door.adapter, show=show)

    assert door.lines()[0] == {
        "chat": "local",
        "text": "Changed:\n+1\nend",
        "files": [
            {"name": "a.diff", "content": "é\n"},
            {"name": "b.bin", "content": base64.b64encode(b"\xff\x00").decode(), "encoding": "base64"},
        ],
        "buttons": [{"label": "Undo", "command": "/undo"}],
    }


@pytest.mark.parametrize(
    ("line", "error", "chat"),
    [
        (b"hello", "the line is not JSON: Expecting value: line 1 column 1 (char 0)", None),
        (b"[]", 'the line must be an object: {"text": "..."}', None),
        (b'{"text": 1, "chat": "a"}', '"text" is missing or is not a string', "a"),
        (b'{"chat": "a"}', '"text" is missing or is not a string', "a"),
        (b'{"text": "x", "chat": 5}', '"chat" must be a string of 1 to 200 characters', None),
        (b'{"text": "x", "chat": ""}', '"chat" must be a string of 1 to 200 characters', None),
        (b'{"text": "x", "user": ""}', '"user" must be a string of 1 to 200 characters', None),
        (b'{"text": "x", "chatt": "a", "chat": "b"}', "unknown field 'chatt'; the fields are text, chat and user", "b"),
        (b'{"text": "\xff"}', "the line is not UTF-8 (byte 10)", None),
        (b"[" * 100_000, "the line is nested too deeply", None),
    ],
)
async def test_a_line_that_cannot_be_used_is_answered_and_the_next_goes_on(door, converse, line, error, chat):
    async def write():
        await to_thread.run_sync(door.write, line + b'\n{"text": "next", "chat": "n"}\n')
        door.end()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        answering = await converse(door.adapter)

    named = {} if chat is None else {"chat": chat}
    assert door.lines() == [
        {**named, "error": error},
        {**named, "done": True},
        {"chat": "n", "text": "you said next", "files": [], "buttons": []},
        {"chat": "n", "done": True},
    ]
    assert len(answering.received) == 1


async def test_a_line_without_end_is_skipped(converse):
    door = Door(longest_bytes=1000)
    door.write(b"x" * 5000 + b'\n{"text": "next"}\n')
    door.end()

    await converse(door.adapter)

    assert [sorted(line) for line in door.lines()] == [
        ["error"],
        ["done"],
        ["buttons", "chat", "files", "text"],
        ["chat", "done"],
    ]


async def test_blank_lines_are_nothing(door, converse):
    door.write(b"\n  \n\n")
    door.end()

    await converse(door.adapter)

    assert door.lines() == []


async def test_names_of_any_bytes_are_written_as_text_that_every_parser_takes(door, converse):
    async def odd(answering, inbound):
        name = b"caf\xe9 \xf0\x9f\x93\xb8".decode("utf-8", "surrogateescape")
        await answering.say(inbound, name, files=(Attachment(name, b""),))

    door.write(b'{"text": "odd", "chat": "\\ud800"}\n')
    door.end()

    await converse(door.adapter, odd=odd)

    assert door.lines()[0] == {
        "chat": "\\ud800",
        "text": "caf\\xe9 📸",
        "files": [{"name": "caf\\xe9 📸", "content": ""}],
        "buttons": [],
    }


async def test_a_slow_chat_does_not_hold_up_another(door, converse):
    released = anyio.Event()

    async def slow(answering, inbound):
        await released.wait()
        await answering.say(inbound, "slow")

    async def quick(answering, inbound):
        await answering.say(inbound, "quick")
        released.set()

    door.write(b'{"text": "slow", "chat": "a"}\n{"text": "quick", "chat": "b"}\n')
    door.end()

    await converse(door.adapter, slow=slow, quick=quick)

    assert [line["text"] for line in door.lines() if "text" in line] == ["quick", "slow"]


async def test_the_end_of_the_input_is_the_end_only_when_all_is_dealt_with(door):
    released = anyio.Event()
    ended = anyio.Event()

    async def receive(inbound):
        tasks.start_soon(answer, inbound)
        return Reception()

    async def answer(inbound):
        await released.wait()
        assert not ended.is_set()
        await door.adapter.finished(inbound.place, inbound.event_id)

    door.write(b'{"text": "slow"}\n')
    door.end()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def run_to_the_end():
                await door.adapter.run(receive)
                ended.set()

            tasks.start_soon(run_to_the_end)
            await anyio.wait_all_tasks_blocked()
            released.set()

    assert door.lines() == [{"chat": "local", "done": True}]


async def test_every_message_has_an_id_of_its_own(door, converse):
    other = Door()
    for each in (door, other):
        each.write(b'{"text": "x"}\n' * 20)
        each.end()

    ids = [message.event_id for each in (door, other) for message in (await converse(each.adapter)).received]

    assert len(set(ids)) == 40
    door.lines()
    other.lines()


async def test_the_end_of_a_message_of_an_earlier_run_is_not_written(door):
    door.end()

    await door.adapter.finished(Place("console", "a"), "of-another-run")

    assert door.lines() == []


async def test_a_large_reply_is_written_whole_to_a_slow_reader(door, converse):
    large = "x" * 1_000_000

    async def big(answering, inbound):
        await answering.say(inbound, large)

    door.write(b'{"text": "big", "chat": "a"}\n{"text": "big", "chat": "b"}\n')
    door.end()
    collected = bytearray()

    def read():
        while chunk := os.read(door.far_out, 4096):
            collected.extend(chunk)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(to_thread.run_sync, read)
        await converse(door.adapter, big=big)
        for descriptor in door.near:
            os.close(descriptor)
    os.close(door.far_out)

    lines = [json.loads(line) for line in bytes(collected).splitlines()]
    assert [len(line.get("text", "")) for line in lines if "text" in line] == [len(large)] * 2


async def test_it_ends_quietly_when_nobody_reads_the_output(door, converse):
    os.close(door.far_out)
    door.write(b'{"text": "hello"}\nbad\n{"text": "hello"}\n')

    await run_unread(door)

    door.end()
    for descriptor in door.near:
        os.close(descriptor)


async def run_unread(door):
    """Runs the adapter while the input stays open; each answer fails for good, as it is told."""
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:

            async def answer(inbound):
                with pytest.raises(SendFailed) as caught:
                    await door.adapter.send(Outbound(inbound.place, (Part("hello"),)))
                assert caught.value.retry_after_s is None
                await door.adapter.finished(inbound.place, inbound.event_id)

            async def receive(inbound):
                tasks.start_soon(answer, inbound)
                return Reception()

            await door.adapter.run(receive)


async def test_cancelling_ends_it_while_the_input_is_silent_and_the_output_is_full(door):
    with anyio.move_on_after(0.3) as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(door.adapter.run, None)
            tasks.start_soon(door.adapter.send, Outbound(Place("console", "a"), (Part("x" * 1_000_000),)))

    assert scope.cancelled_caught
    door.end()
    for descriptor in (*door.near, door.far_out):
        os.close(descriptor)


async def test_a_notice_is_a_reply_and_the_end_of_its_message(door, converse):
    door.write(b'{"text": "refuse me", "chat": "a"}\n')
    door.end()

    answering = await converse(door.adapter)

    assert answering.received == []
    assert door.lines() == [
        {"chat": "a", "text": "You are\x1b not admitted.", "files": [], "buttons": []},
        {"chat": "a", "done": True},
    ]
