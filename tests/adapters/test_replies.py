"""A reply becomes messages, in order and whole, and goes on where an attempt stopped."""

from dataclasses import replace

import pytest

from adapters.contract import Attachment, Button, Outbound, Part, Place, SendFailed, Style
from adapters.pages import Room, plain
from adapters.replies import FILLER, Deliveries, Limits, Piece, compose, file_name

LIMITS = Limits("Paper", Room(200), buttons=2, file_bytes=1_000, caption=40)
PLACE = Place("paper", "1")


def composed(*parts: Part | str, files: tuple[Attachment, ...] = (), buttons: tuple[Button, ...] = ()) -> list[Piece]:
    marked = tuple(Part(part) if isinstance(part, str) else part for part in parts)
    return compose(Outbound(PLACE, marked, files, buttons), LIMITS)


def said(pieces: list[Piece]) -> list[str]:
    return [plain(piece.parts) for piece in pieces]


def test_nothing_to_say_is_no_message():
    assert composed(" ", "\n") == []


def test_a_short_text_is_the_caption_of_its_only_file():
    file = Attachment("a.diff", b"+x\n")

    assert composed("1 file", files=(file,)) == [Piece((Part("1 file"),), file)]
    assert composed("x" * 41, files=(file,)) == [Piece((Part("x" * 41),)), Piece(file=file)]
    assert composed("two", files=(file, file)) == [Piece((Part("two"),)), Piece(file=file), Piece(file=file)]


@pytest.mark.parametrize(("style", "name"), [(Style.DIFF, "reply.diff"), (Style.BLOCK, "reply.txt")])
def test_a_long_reply_has_its_beginning_as_a_message_and_goes_along_whole(style, name):
    lines = "".join(f"+line {number}\n" for number in range(200))

    head, whole = composed("2 files\n", Part(lines, style))

    assert plain(head.parts).startswith("2 files\n+line 0\n+line 1\n")
    assert plain(head.parts).endswith(f"\n… whole in {name}")
    assert LIMITS.text.taken(head.parts) <= 200
    assert whole.file == Attachment(name, b"2 files\n" + lines.encode())


def test_files_that_cannot_be_sent_are_said():
    files = (Attachment("empty.txt", b""), Attachment("huge.bin", bytes(1_001)), Attachment("a", b"1"))

    text, file = composed("x" * 50, files=files)

    assert plain(text.parts) == "x" * 50 + "\nempty.txt is empty.\nhuge.bin is too large for Paper (0 MB)."
    assert file == Piece(file=files[2])


def test_buttons_stand_below_the_last_text_and_more_than_fit_below_messages_of_their_own():
    buttons = tuple(Button(str(number), "/x", f"t{number}") for number in range(5))
    file = Attachment("a", b"1")

    pieces = composed("x" * 150 + "\n\n" + "y" * 150, files=(file,), buttons=buttons)

    assert [piece.buttons for piece in pieces] == [(), buttons[:2], buttons[2:4], buttons[4:], ()]
    assert said(pieces) == ["x" * 150, "y" * 150, "⋯", "⋯", ""]
    assert said(composed(buttons=buttons[:1])) == ["⋯"]


def test_buttons_without_words_stand_below_a_file_only_where_words_could():
    file, button = Attachment("a", b"1"), Button("B", "/x", "t1")
    message = Outbound(PLACE, (), (file,), (button,))

    assert compose(message, LIMITS) == [Piece(file=file, buttons=(button,))]
    assert compose(message, replace(LIMITS, caption=0)) == [Piece(FILLER, buttons=(button,)), Piece(file=file)]


def test_a_button_that_stands_for_nothing_yet_is_a_command_to_type():
    assert said(composed("typed", buttons=(Button("Undo", "/undo #1"),))) == ["typed\nUndo: /undo #1"]


@pytest.mark.parametrize(
    ("name", "safe"),
    [('a"b/c\n.diff', "a_b_c_.diff"), ("", "file"), ("..\\x\0", ".._x�"), ("x" * 200 + ".py", "x" * 117 + ".py")],
)
def test_a_files_name_breaks_no_request(name, safe):
    assert file_name(name) == safe


async def test_the_next_attempt_goes_on_where_the_last_one_stopped():
    message = Outbound(PLACE, (Part("hello"),))
    pieces = [Piece((Part(word),)) for word in ("one", "two", "three")]
    sent: list[tuple[int, str]] = []
    deliveries = Deliveries()

    async def send(number: int, piece: Piece) -> None:
        sent.append((number, plain(piece.parts)))
        if len(sent) == 2:
            raise SendFailed("lost", retry_after_s=1.0)

    with pytest.raises(SendFailed):
        await deliveries.deliver(message, pieces, send)
    await deliveries.deliver(message, pieces, send)
    await deliveries.deliver(message, pieces, send)

    assert sent == [(0, "one"), (1, "two"), (1, "two"), (2, "three"), (0, "one"), (1, "two"), (2, "three")]


async def test_another_reply_to_the_same_place_begins_at_its_beginning():
    pieces = [Piece((Part(word),)) for word in ("one", "two")]
    sent: list[int] = []
    deliveries = Deliveries()

    async def send(number: int, piece: Piece) -> None:
        sent.append(number)
        if len(sent) == 2:
            raise SendFailed("never", retry_after_s=None)

    with pytest.raises(SendFailed):
        await deliveries.deliver(Outbound(PLACE, (Part("first"),)), pieces, send)
    await deliveries.deliver(Outbound(PLACE, (Part("second"),)), pieces, send)

    assert sent == [0, 1, 0, 1]
