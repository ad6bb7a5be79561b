"""What the tool ``terminal`` tells of a command that has ended: its output, cut where it is long, and how it ended."""

import codecs
import re
import signal
from dataclasses import dataclass
from typing import Final

from engine.backends.base import ProcessResult
from engine.host.paths import display

OUTPUT_LIMIT_BYTES: Final = 64 * 1024
"""How much output is told unless the caller asks otherwise."""

_SNIFFED_BYTES = 8000
_BINARY_SHARE = 0.1  # more odd characters than that, and it is no text
_FEW = 8  # so many bytes that are no UTF-8 make no binary of a short text: a name in another encoding has some
_TERMINAL = "\t\n\r\x1b\b\f\0"  # what programs write to terminals, and NUL, which find -print0 puts between names
_SHELL_SIGNAL = 128
_WHOLE_S = 1.0
_CONTINUATION = bytes(range(0x80, 0xC0))  # the second and later bytes of a character in UTF-8

# ECMA-48: control sequences (colours, cursor), operating system commands (titles, links), other two-character escapes.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])")
_SHOWN = {code: f"\\x{code:02x}" for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n\r"}


@dataclass(frozen=True, slots=True)
class Said:
    """What there is to say: for agent and people alike. ``exit_code`` is negative for a signal."""

    ok: bool
    text: str
    exit_code: int | None


def describe(result: ProcessResult, *, limit_bytes: int = OUTPUT_LIMIT_BYTES) -> Said:
    """Put the output and the end of a command into words; a command that ended well without output says so."""
    ok = result.exit_code == 0 and not (result.timed_out or result.stopped)
    output = _output(result, limit_bytes)
    ending = _ending(result)
    if output and ending and not output.endswith("\n"):
        output += "\n"
    code = -result.signal if result.signal is not None else result.exit_code
    return Said(ok, output + ending or "[no output]", code)


def _ending(result: ProcessResult) -> str:
    said = []
    if result.stopped:
        said.append("stopped" if result.duration_s else "stopped before it started")
    elif result.timed_out:
        said.append(f"ran out of time after {_duration(result.duration_s)}")
    elif result.signal is not None:
        said.append(f"ended by {_signal_name(result.signal)}")
    elif result.exit_code is None and not result.lost:
        said.append("did not end")
    elif result.exit_code:
        said.append(f"exit code {result.exit_code}{_shell_signal(result.exit_code)}")
    if result.lost:
        said.append(f"the connection to it was lost ({result.lost}), so whether it goes on is not known")
    if result.left_running:
        said.append("some of its processes could not be ended and still run")
    said += [f"left running: pid {display(process)}" for process in result.detached]
    return f"[{'; '.join(said)}]" if said else ""


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= _WHOLE_S else f"{seconds:.1f} s"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _shell_signal(code: int) -> str:
    """Say what a shell means by an exit code over 128: the signal that ended what it ran."""
    number = code - _SHELL_SIGNAL
    return f" ({_signal_name(number)})" if number in signal.valid_signals() else ""


def _output(result: ProcessResult, limit_bytes: int) -> str:
    whole_bytes = len(result.head) + len(result.tail) + result.cut_bytes
    if _is_binary(result.head[:_SNIFFED_BYTES] or result.tail[:_SNIFFED_BYTES]):
        return f"[binary output of {whole_bytes} bytes; it is not shown]"
    if whole_bytes <= limit_bytes and not result.cut_bytes:
        return _text(result.output)
    head = _whole_lines(_beginning(result, limit_bytes - limit_bytes // 2))
    tail = _from_line(_end(result, limit_bytes // 2))
    gap = "" if not head or head.endswith(b"\n") else "\n"
    return f"{_text(head)}{gap}[cut: {whole_bytes - len(head) - len(tail)} bytes]\n{_text(tail)}"


def _beginning(result: ProcessResult, limit_bytes: int) -> bytes:
    return (result.head if result.cut_bytes else result.output)[:limit_bytes]


def _end(result: ProcessResult, limit_bytes: int) -> bytes:
    kept = result.tail if result.cut_bytes else result.output
    return kept[max(len(kept) - limit_bytes, 0) :]


def _whole_lines(head: bytes) -> bytes:
    """Leave out an unfinished last line, or, where there is only one, an unfinished last character."""
    end = head.rfind(b"\n") + 1
    if end:
        return head[:end]
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    return decoder.decode(head).encode("utf-8", "surrogateescape")


def _from_line(tail: bytes) -> bytes:
    """Leave out the rest of a line at the beginning, or, where there is only one, the rest of a character."""
    start = tail.find(b"\n") + 1
    if 0 < start < len(tail):
        return tail[start:]
    return tail.lstrip(_CONTINUATION)


def _is_binary(sample: bytes) -> bool:
    text = sample.decode("utf-8", "surrogateescape")
    # Between names there is one NUL, so two in a row are none of these.
    control = sum(1 for char in text if char < " " and char not in _TERMINAL) + text.count("\0\0")
    undecodable = sum(1 for char in text if "\udc80" <= char <= "\udcff")
    return control + undecodable > max(len(text) * _BINARY_SHARE, 0 if control else _FEW)


def _text(output: bytes) -> str:
    """Return valid text without colours and cursor movements; what a progress bar overwrote is left out."""
    plain = _ESCAPES.sub("", output.decode("utf-8", "backslashreplace"))
    return "\n".join(map(_last_overwrite, plain.split("\n"))).translate(_SHOWN)


def _last_overwrite(line: str) -> str:
    ended = line.endswith("\r")
    return line.rstrip("\r").rpartition("\r")[2] + ("\r" if ended else "")
