"""Following a command that runs elsewhere: its output, its end, and having it ended.

The other side is a ``Channel``: the program of ``wrapper``, two streams from it, and a way to ask it to end. That may
be a process of ours (``client``) or a call of a service's library; all the rest is the same here.
"""

import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Protocol

from engine.backends.base import ProcessResult, StopSignal
from engine.backends.output import CAPTURE_BYTES, Capture, Lines
from engine.backends.wrapper import LONGEST_COMMAND_BYTES, Verdict, program
from engine.errors import ToolRefused

GRACE_S: Final = 2.0
"""How long processes elsewhere may take to end after SIGTERM, before SIGKILL."""

PATIENCE_S: Final = 10.0
"""How long the other side may take to say that it ended a command, beyond ``GRACE_S``."""

_QUIET_S = 0.3  # what was written before the end has come by then
_FAREWELL_S = 2.0  # what lives on may write without a pause
_PROMPT_S = 0.2  # an unfinished line is handed on after this silence
_WAITING_CHUNKS = 64  # more is not taken in before it was dealt with
_STREAMS = 2
_LANGUAGE = frozenset({"LANG", "LANGUAGE", "TERM", "TZ"})


class Channel(Protocol):
    """A run of the wrapper somewhere."""

    def output(self) -> Iterator[bytes]:
        """Yield what comes on standard output until its end; called in a thread of its own."""
        ...

    def errors(self) -> Iterator[bytes]:
        """Yield what comes on standard errors until its end; called in a thread of its own."""
        ...

    def ask_to_end(self) -> None:
        """Ask the wrapper to end the command; returns at once, and asking when it is gone is fine."""
        ...

    def kill(self, verdict: Verdict) -> bool:
        """End the command by another way, since the wrapper does not answer; whether that is sure to have worked."""
        ...

    def close(self) -> None:
        """Let go of it, whatever it does; both streams end then."""
        ...


class NotStarted(Exception):
    """The command did not begin; ``reason`` is what the other side, or the way to it, said."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Hearing:
    """Who hears of the output, and how much of it is kept."""

    on_output: Callable[[bytes], None]
    capture_bytes: int = CAPTURE_BYTES


@dataclass(frozen=True, slots=True)
class Order:
    """A command to be run elsewhere: in which directory there, with what added to the environment it finds."""

    command: str
    directory: str
    environment: Mapping[str, str]
    keep_background: bool = False


def run_elsewhere(
    open_channel: Callable[[str, str], Channel],
    order: Order,
    hearing: Hearing,
    stop: StopSignal,
    timeout_s: float | None,
) -> ProcessResult:
    """Run a command elsewhere to its end, or have it ended.

    ``open_channel`` starts the program that it is given, for ``/bin/sh -c`` or as a line for ``wrapper.GATE``; the
    other argument is the run's mark. It may raise ``NotStarted``; when a stop is the reason, that is the result.

    Raises:
        NotStarted: nothing ran.
        ToolRefused: the command is none that could be run anywhere.
    """
    _require_possible(order.command)
    if stop.stopped:
        return ProcessResult(None, None, stopped=True)
    mark = secrets.token_hex(16)
    text = program(order.command, order.directory, order.environment, mark, grace_s=GRACE_S, keep=order.keep_background)
    try:
        channel = open_channel(text, mark)
    except NotStarted as error:
        return _not_begun(error, stop)
    conversation = _Conversation(channel, Verdict(mark), hearing)
    try:
        with stop.listening(conversation.wake):
            conversation.follow(stop, timeout_s)
    finally:
        conversation.close()
    return conversation.result()


def _not_begun(error: NotStarted, stop: StopSignal) -> ProcessResult:
    """What to say of a command that did not begin: that it was stopped, if it was, else why."""
    if not stop.stopped:
        raise error
    return ProcessResult(None, None, stopped=True)


def language(environment: Mapping[str, str]) -> dict[str, str]:
    """What of the host's environment means the same elsewhere: language, time zone, terminal; no path, no secret."""
    return {name: value for name, value in environment.items() if name in _LANGUAGE or name.startswith("LC_")}


def _require_possible(command: str) -> None:
    if "\0" in command:
        raise ToolRefused("terminal", "the command holds a NUL character, which no command can")
    try:
        size_bytes = len(command.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        raise ToolRefused("terminal", "the command holds characters that no system can encode") from None
    if size_bytes > LONGEST_COMMAND_BYTES:
        raise ToolRefused("terminal", "the command is longer than a system takes; write it to a file and run that")


class _Source(Enum):
    OUTPUT = auto()
    ERRORS = auto()
    END = auto()
    WAKE = auto()


class _Conversation:
    """One run: two threads read, the caller's thread decides."""

    def __init__(self, channel: Channel, verdict: Verdict, hearing: Hearing) -> None:
        self._channel = channel
        self._verdict = verdict
        self._capture = Capture(hearing.capture_bytes)
        self._lines = Lines(hearing.on_output)
        self._arrived: queue.Queue[tuple[_Source, bytes]] = queue.Queue(_WAITING_CHUNKS)
        self._closed = threading.Event()
        self._open = _STREAMS
        self._started_s = time.monotonic()
        self._duration_s = 0.0
        self._stopped = False
        self._timed_out = False
        self._killed = False
        self._silent = False
        for source, stream in ((_Source.OUTPUT, channel.output()), (_Source.ERRORS, channel.errors())):
            threading.Thread(target=self._read, args=(source, stream), name="command-elsewhere", daemon=True).start()

    def wake(self) -> None:
        """Have the caller's thread look round; may be called from any thread, and never waits."""
        try:
            self._arrived.put_nowait((_Source.WAKE, b""))
        except queue.Full:  # it will look round soon enough
            return

    def follow(self, stop: StopSignal, timeout_s: float | None) -> None:
        """Take in what comes until all is over; ask for the end when it is wanted, and insist when it is not heeded."""
        while not self._over(0.0):
            self._duration_s = time.monotonic() - self._started_s
            self._stopped = stop.stopped
            self._timed_out = not self._stopped and timeout_s is not None and self._duration_s >= timeout_s
            if self._stopped or self._timed_out:
                self._have_it_ended()
                return
            self._take(None if timeout_s is None else timeout_s - self._duration_s)
        self._duration_s = time.monotonic() - self._started_s

    def close(self) -> None:
        """Let go of the channel and of the threads."""
        self._closed.set()
        self._channel.close()
        self._lines.flush()

    def result(self) -> ProcessResult:
        """Say how it went."""
        verdict = self._verdict
        verdict.close()
        if verdict.nowhere:
            raise NotStarted(_last_line(verdict.errors) or "the directory does not exist there")
        if verdict.group is None and not (self._stopped or self._timed_out):
            raise NotStarted(_last_line(verdict.errors) or "it ended before the command began, and said nothing")
        head, tail, cut_bytes = self._capture.kept()
        begun = verdict.group is not None
        lost = begun and not (verdict.ended or self._killed or self._silent)
        return ProcessResult(
            exit_code=verdict.exit_code,
            signal=verdict.signal,
            timed_out=self._timed_out,
            stopped=self._stopped,
            head=head,
            tail=tail,
            cut_bytes=cut_bytes,
            duration_s=self._duration_s,
            left_running=verdict.stuck or self._silent,
            detached=tuple(verdict.left),
            lost=(_last_line(verdict.errors) or "it ended without a word") if lost else "",
        )

    def _have_it_ended(self) -> None:
        """Ask, wait, and ask by another way."""
        self._channel.ask_to_end()
        if self._over(GRACE_S + PATIENCE_S):
            return
        self._killed = self._channel.kill(self._verdict)
        # What was never begun has nothing that could run on.
        self._silent = not self._over(GRACE_S) and self._verdict.group is not None

    def _over(self, patience_s: float) -> bool:
        """Go on taking in for a while; whether everything has been said."""
        deadline_s = time.monotonic() + patience_s
        while self._open and not (self._verdict.done and self._quiet()):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            self._take(left_s)
        return True

    def _quiet(self) -> bool:
        """Take what was written before the end.

        The streams end with the command, however slowly what it wrote arrives; but what lives on holds them open.
        """
        lives_on = self._verdict.left or self._verdict.stuck
        quiet_s, farewell_s = (_QUIET_S, _FAREWELL_S) if lives_on else (PATIENCE_S, float("inf"))
        now_s = heard_s = time.monotonic()
        limit_s = now_s + farewell_s
        while self._open and now_s < min(limit_s, heard_s + quiet_s):
            taken = self._take(heard_s + quiet_s - now_s)
            now_s = time.monotonic()
            heard_s = heard_s if taken is None else now_s
        return True

    def _take(self, wait_s: float | None) -> _Source | None:
        """Wait for something to arrive, and deal with it."""
        if self._lines.waiting:
            wait_s = _PROMPT_S if wait_s is None else min(wait_s, _PROMPT_S)
        try:
            source, data = self._arrived.get(timeout=wait_s)
        except queue.Empty:
            self._lines.flush()
            return None
        match source:
            case _Source.OUTPUT:
                self._capture.add(data)
                self._lines.add(data)
            case _Source.ERRORS:
                self._verdict.feed(data)
            case _Source.END:
                self._open -= 1
        return source

    def _read(self, source: _Source, stream: Iterable[bytes]) -> None:
        try:
            for data in stream:
                if not self._hand_over(source, data):
                    return
        finally:
            self._hand_over(_Source.END, b"")

    def _hand_over(self, source: _Source, data: bytes) -> bool:
        """Wait until there is room; false when nobody listens any more."""
        while not self._closed.is_set():
            try:
                self._arrived.put((source, data), timeout=_PROMPT_S)
            except queue.Full:
                continue
            return True
        return False


def _last_line(text: str) -> str:
    """What a client says last is what it failed of."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
