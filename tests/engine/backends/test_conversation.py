"""Following a command elsewhere when the other side does not behave: it is silent, breaks off, or goes on talking."""

import queue
import threading
from collections.abc import Iterator

import pytest

from engine.backends import conversation
from engine.backends.base import StopSignal
from engine.backends.conversation import Hearing, NotStarted, Order, language, run_elsewhere
from engine.backends.wrapper import LONGEST_COMMAND_BYTES, Verdict, one_line
from engine.errors import ToolRefused


class Channel:
    """The other side, as a test plays it; ``asked`` and ``killed`` are what it was told."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        self.kills: bool | None = None
        self.asked = threading.Event()
        self.killed = threading.Event()
        self.closed = threading.Event()
        self._output: queue.Queue[bytes | None] = queue.Queue()
        self._errors: queue.Queue[bytes | None] = queue.Queue()

    def writes(self, data: bytes) -> None:
        self._output.put(data)

    def says(self, *words: str) -> None:
        self._errors.put("".join(f"\n{self.mark} {word}\n" for word in words).encode())

    def complains(self, text: str) -> None:
        self._errors.put(text.encode())

    def ends(self) -> None:
        self._output.put(None)
        self._errors.put(None)

    def output(self) -> Iterator[bytes]:
        return iter(self._output.get, None)

    def errors(self) -> Iterator[bytes]:
        return iter(self._errors.get, None)

    def ask_to_end(self) -> None:
        self.asked.set()

    def kill(self, _verdict: Verdict) -> bool:
        self.killed.set()
        if self.kills is not None:
            self.ends()
        return bool(self.kills)

    def close(self) -> None:
        self.closed.set()
        self.ends()


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "GRACE_S", 0.05)
    monkeypatch.setattr(conversation, "PATIENCE_S", 0.05)


class Play:
    """One run against a played channel."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.channel: Channel
        self.kills: bool | None = None
        self.stop = StopSignal()

    def __call__(self, *, timeout_s: float | None = None, script: str = "") -> conversation.ProcessResult:
        def opened(text: str, mark: str) -> Channel:
            assert mark in text
            self.channel = Channel(mark)
            self.channel.kills = self.kills
            for step in script.split("|"):
                word, _, rest = step.partition(":")
                if word:
                    getattr(self.channel, word)(*([rest.encode()] if word == "writes" else [rest] if rest else []))
            return self.channel

        order = Order("anything", "/", {})
        return run_elsewhere(opened, order, Hearing(self.heard.append), self.stop, timeout_s)


@pytest.fixture
def play() -> Play:
    return Play()


def test_one_that_does_not_answer_is_killed_by_another_way_and_said_to_run_on(play: Play) -> None:
    result = play(script="says:group 7|writes:some\n", timeout_s=0.05)

    assert (play.channel.asked.is_set(), play.channel.killed.is_set(), play.channel.closed.is_set()) == (True,) * 3
    assert (result.timed_out, result.left_running, result.exit_code) == (True, True, None)
    assert result.output == b"some\n"


@pytest.mark.parametrize("kills", [True, False])
def test_one_that_ends_with_its_connection_is_gone_for_sure_only_if_it_was_killed(play: Play, *, kills: bool) -> None:
    play.kills = kills

    result = play(script="says:group 7|complains:client_loop: Broken pipe\n", timeout_s=0.05)

    assert (result.timed_out, result.left_running) == (True, False)
    assert result.lost == ("" if kills else "client_loop: Broken pipe")


def test_one_that_breaks_off_is_lost_with_the_reason(play: Play) -> None:
    result = play(script="says:group 7|complains:client_loop: Broken pipe\n|ends")

    assert (result.lost, result.exit_code, result.signal) == ("client_loop: Broken pipe", None, None)


def test_what_never_began_says_what_the_way_there_said(play: Play) -> None:
    with pytest.raises(NotStarted, match="Connection refused"):
        play(script="complains:debug\nConnection refused\n|ends")
    assert play.channel.closed.is_set()


def test_what_is_stopped_before_it_began_leaves_nothing_running(play: Play) -> None:
    result = play(timeout_s=0.02)

    assert (result.timed_out, result.left_running) == (True, False)


def test_a_stream_that_stays_open_after_the_end_holds_nothing_up(play: Play) -> None:
    result = play(script="says:group 7|writes:out\n|says:exit 0|says:left 12 serve|says:done")

    assert (result.exit_code, result.detached, result.output, result.lost) == (0, ("12 serve",), b"out\n", "")


def test_what_cannot_be_ended_there_is_said(play: Play) -> None:
    result = play(script="says:group 7|says:exit 0|says:stuck 12|says:done|ends")

    assert result.left_running


def test_a_receiver_that_raises_closes_the_channel(play: Play) -> None:
    class Broken(Exception):
        pass

    def opened(text: str, mark: str) -> Channel:
        play.channel = Channel(mark)
        play.channel.writes(b"line\n")
        return play.channel

    def raises(data: bytes) -> None:
        raise Broken

    with pytest.raises(Broken):
        run_elsewhere(opened, Order("x", "/", {}), Hearing(raises), play.stop, None)
    assert play.channel.closed.is_set()


@pytest.mark.parametrize(
    ("command", "reason"),
    [("a\0b", "NUL"), ("\ud800", "cannot encode|can encode"), ("x" * (LONGEST_COMMAND_BYTES + 1), "longer than")],
)
def test_a_command_that_no_system_takes_is_refused_before_anything_is_reached(command: str, reason: str) -> None:
    with pytest.raises(ToolRefused, match=reason):
        run_elsewhere(lambda *_: pytest.fail("reached"), Order(command, "/", {}), Hearing(print), StopSignal(), None)


def test_only_language_and_terminal_go_along() -> None:
    ours = {"LANG": "C", "LC_TIME": "de_DE", "TZ": "UTC", "TERM": "xterm", "PATH": "/bin", "HOME": "/root", "KEY": "x"}

    assert language(ours) == {"LANG": "C", "LC_TIME": "de_DE", "TZ": "UTC", "TERM": "xterm"}


def test_a_program_is_one_line_of_plain_characters_whatever_it_holds() -> None:
    line = one_line("a\n'\"\\$(x)`!\0\udcff é")

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert set(line) <= set(b"abcdefghijklmnopqrstuvwxyz0123456789\\ \n")


def test_a_verdict_is_read_from_any_pieces() -> None:
    text = b"noise\n\nM group 12\n\n[1] + Done(137)\n\nM exit 137\n\nM left 3 a b\n\nM done\n"
    for size in (1, 7, 1000):
        verdict = Verdict("M")
        for start in range(0, len(text), size):
            verdict.feed(text[start : start + size])

        assert (verdict.group, verdict.exit_code, verdict.signal, verdict.left) == (12, 137, None, ["3 a b"])
        assert (verdict.done, verdict.errors) == (True, "noise\n")
