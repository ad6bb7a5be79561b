"""What is told of a command that has ended."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.backends.base import ProcessResult
from engine.tools.terminal import Said, describe


def ended(code: int | None = 0, **more: object) -> ProcessResult:
    return ProcessResult(**{"exit_code": code, "signal": None, "duration_s": 1.0, **more})


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (ended(head=b"hi\n"), Said(True, "hi\n", 0)),
        (ended(), Said(True, "[no output]", 0)),
        (ended(3), Said(False, "[exit code 3]", 3)),
        (ended(3, head=b"no end"), Said(False, "no end\n[exit code 3]", 3)),
        (ended(137), Said(False, "[exit code 137 (SIGKILL)]", 137)),
        (ended(255), Said(False, "[exit code 255]", 255)),
        (ended(None, signal=9), Said(False, "[ended by SIGKILL]", -9)),
        (ended(None, signal=99), Said(False, "[ended by signal 99]", -99)),
        (ended(None, signal=15, stopped=True, head=b"half\n"), Said(False, "half\n[stopped]", -15)),
        (ended(0, stopped=True), Said(False, "[stopped]", 0)),
        (ended(None, stopped=True, duration_s=0.0), Said(False, "[stopped before it started]", None)),
        (ended(None, signal=15, timed_out=True, duration_s=30.02), Said(False, "[ran out of time after 30 s]", -15)),
        (ended(0, timed_out=True, duration_s=0.31), Said(False, "[ran out of time after 0.3 s]", 0)),
        (
            ended(None, left_running=True),
            Said(False, "[did not end; some of its processes could not be ended and still run]", None),
        ),
        (ended(left_running=True), Said(True, "[some of its processes could not be ended and still run]", 0)),
    ],
)
def test_the_end_of_a_command_is_put_into_words(result: ProcessResult, said: Said) -> None:
    assert describe(result) == said


def test_long_output_keeps_whole_lines_of_head_and_tail_and_says_what_is_cut() -> None:
    output = b"".join(b"line %03d\n" % number for number in range(100))

    text = describe(ended(1, head=output), limit_bytes=50).text

    assert text == "line 000\nline 001\n[cut: 864 bytes]\nline 098\nline 099\n[exit code 1]"


def test_output_that_was_cut_while_it_ran_is_counted_whole() -> None:
    result = ended(head=b"a\n" * 50, tail=b"z\n" * 50, cut_bytes=1000)

    assert describe(result).text == "a\n" * 50 + "[cut: 1002 bytes]\n" + "z\n" * 49
    assert describe(result, limit_bytes=8).text == "a\na\n[cut: 1194 bytes]\nz\n"


@given(
    st.lists(st.sampled_from([b"a", b"b\n", b"\n", "é".encode(), "🙂".encode(), b"long line " * 3]), max_size=60),
    st.integers(min_value=2, max_value=60),
)
def test_nothing_that_is_shown_is_invented_and_what_is_cut_is_counted(parts: list[bytes], limit_bytes: int) -> None:
    output = b"".join(parts)

    text = describe(ended(head=output), limit_bytes=limit_bytes).text

    if len(output) <= limit_bytes:
        assert text == (output.decode() or "[no output]")
    else:
        head, _, rest = text.rpartition("[cut: ")
        count, _, tail = rest.partition(" bytes]\n")
        whole = output.decode()
        assert whole.endswith(tail)
        assert whole.startswith((head, head.removesuffix("\n")))
        shown = len(tail.encode()) + len(head.encode())
        # The head may have got a newline of its own, where it does not end with one.
        assert shown + int(count) - len(output) in {0, 1}
        assert shown <= limit_bytes + 1


def test_one_line_without_end_is_cut_between_characters() -> None:
    text = describe(ended(head="🙂".encode() * 100), limit_bytes=18).text

    assert text == "🙂🙂\n[cut: 384 bytes]\n🙂🙂"


def test_bytes_that_are_no_text_are_escaped_and_the_text_is_valid() -> None:
    text = describe(ended(head=b"name: caf\xe9, and enough text around it\n\0\x07\n")).text

    assert text == "name: caf\\xe9, and enough text around it\n\\x00\\x07\n"


@pytest.mark.parametrize(
    "output", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xde\xad\xbe\xef", bytes(range(256)) * 10, bytes(1000)]
)
def test_binary_output_is_named_not_shown(output: bytes) -> None:
    assert describe(ended(head=output)).text == f"[binary output of {len(output)} bytes; it is not shown]"


@pytest.mark.parametrize(
    ("output", "text"), [(b"caf\xe9\n", "caf\\xe9\n"), (b"\xff\xfe \xe2\x82 ok\n", "\\xff\\xfe \\xe2\\x82 ok\n")]
)
def test_a_short_text_with_a_few_bytes_that_are_no_utf_8_is_shown(output: bytes, text: str) -> None:
    assert describe(ended(head=output)).text == text


def test_names_parted_by_nul_are_shown() -> None:
    assert describe(ended(head=b"./a\0./b\0./c\0")).text == "./a\\x00./b\\x00./c\\x00"


def test_colours_titles_and_overwritten_progress_are_left_out() -> None:
    output = (
        b"\x1b[1;31merror\x1b[0m: x\n\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n"
        b" 10%\r 50%\r100%\ndone\r\nlast\r"
    )

    assert describe(ended(head=output)).text == "error: x\nlink\n100%\ndone\r\nlast\r"


def test_a_very_long_line_is_told_at_once() -> None:
    text = describe(ended(head=b"\x1b]" * 30_000 + b"x" * 4000)).text

    assert text.endswith("x" * 4000)


def test_what_was_left_running_and_what_was_lost_is_said() -> None:
    left = describe(ProcessResult(0, None, head=b"up\n", detached=("12 python -m http.server",)))
    lost = describe(ProcessResult(None, None, lost="Broken pipe", duration_s=3.0))
    stopped = describe(ProcessResult(None, None, stopped=True, lost="Broken pipe", duration_s=3.0))

    assert left == Said(True, "up\n[left running: pid 12 python -m http.server]", 0)
    assert lost.text == "[the connection to it was lost (Broken pipe), so whether it goes on is not known]"
    assert not lost.ok
    assert stopped.text == f"[stopped; {lost.text[1:]}"
