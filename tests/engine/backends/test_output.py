"""What is kept and handed on of a command's output."""

from hypothesis import given
from hypothesis import strategies as st

from engine.backends.output import LINE_LIMIT_BYTES, Capture, Lines

pieces = st.lists(st.binary(max_size=30), max_size=30)


@given(pieces, st.integers(min_value=0, max_value=100))
def test_head_and_tail_are_those_of_the_whole(parts: list[bytes], limit_bytes: int) -> None:
    whole = b"".join(parts)
    capture = Capture(limit_bytes)
    for part in parts:
        capture.add(part)

    head, tail, cut_bytes = capture.kept()

    assert len(head) + len(tail) + cut_bytes == len(whole)
    assert len(head) + len(tail) == min(limit_bytes, len(whole))
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert capture.kept() == (head, tail, cut_bytes)


def test_memory_stays_bounded_whatever_comes() -> None:
    capture = Capture(1000)
    for _ in range(1000):
        capture.add(bytes(999))

    held = len(capture._head) + len(capture._tail)

    assert held <= 500 + 2 * 500 + 999
    assert capture.kept()[2] == 999_000 - 1000


@given(st.lists(st.sampled_from([b"a", b"b\n", b"\n", b"c\nd", b""]), max_size=30))
def test_every_byte_is_handed_on_once_and_in_whole_lines(parts: list[bytes]) -> None:
    heard: list[bytes] = []
    lines = Lines(heard.append)
    for part in parts:
        lines.add(part)
        assert all(piece.endswith(b"\n") for piece in heard)
    assert lines.waiting is not b"".join(parts).endswith(b"\n") if b"".join(parts) else not lines.waiting

    lines.flush()

    assert b"".join(heard) == b"".join(parts)
    assert all(heard)
    assert not lines.waiting


def test_a_line_without_end_is_handed_on_in_pieces() -> None:
    heard: list[bytes] = []
    lines = Lines(heard.append)

    for _ in range(10):
        lines.add(bytes(LINE_LIMIT_BYTES // 2))

    assert [len(piece) for piece in heard] == [LINE_LIMIT_BYTES] * 5
