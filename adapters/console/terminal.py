"""The console for people: a prompt that stays open while a turn runs, with replies printed above it.

Ctrl-C stops the running turn, never the program; Ctrl-D on an empty line ends it. Enter sends; Alt-Enter, or a
backslash before Enter, begins another line.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import Output
from prompt_toolkit.renderer import print_formatted_text

from adapters.console.attachments import AttachmentDirectory
from adapters.console.pending import NAME, Pending, Speaker
from adapters.console.styles import STYLE, styled
from adapters.console.text import choices, printable
from adapters.contract import Attachment, Inbound, Outbound, Place, Receive

PROMPT = "> "
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK_S = 0.2
TITLE_WIDTH = 48
ANSWER_LINES = 6
"""How much is shown above the prompt of an answer that is being written; whole, it is printed like any reply."""


@dataclass(frozen=True, slots=True)
class Aids:
    """What helps a person at the prompt: a word at the start, what was typed before, what can be typed."""

    banner: str
    history: History
    completer: Completer


class Terminal:
    """The console on a terminal."""

    name = NAME
    has_buttons = False
    connected = True

    def __init__(
        self,
        input: Input,  # noqa: A002 - the library's own word
        output: Output,
        attachments: AttachmentDirectory,
        speaker: Speaker,
        aids: Aids,
    ) -> None:
        self._attachments = attachments
        self._speaker = speaker
        self._banner = aids.banner
        self._pending = Pending()
        self._progress = ""
        self._answer: list[str] = []
        self._busy_since = 0.0
        self._tasks: TaskGroup | None = None
        self._receive: Receive | None = None
        self._session: PromptSession[str] = PromptSession(
            self._prompt,
            multiline=True,
            style=STYLE,
            history=aids.history,
            completer=aids.completer,
            complete_while_typing=False,
            key_bindings=self._bindings(),
            prompt_continuation="  ",
            enable_suspend=True,
            input=input,
            output=output,
        )

    async def run(self, receive: Receive) -> None:
        """Ask for one message after another until Ctrl-D; a running turn does not keep the prompt from opening."""
        # Raw from here to the end, also between two prompts: what is typed there belongs to the next one, Ctrl-D too.
        with self._session.input.raw_mode():
            await self._converse(receive)

    async def _converse(self, receive: Receive) -> None:
        async with anyio.create_task_group() as tasks:
            self._tasks, self._receive = tasks, receive
            self._print([("class:quiet", self._banner)])
            while (text := await self._ask()) is not None:
                if text.strip():
                    await self._hand_over(text)
            tasks.cancel_scope.cancel()

    async def _ask(self) -> str | None:
        try:
            return await self._session.prompt_async()
        except EOFError:
            return None

    async def _hand_over(self, text: str) -> None:
        if self._receive is None or self._tasks is None:
            raise AssertionError("messages are taken in by run")
        if not self._pending:
            self._busy_since = time.monotonic()
            self._tasks.start_soon(self._tick)
        event_id = self._pending.begin()
        inbound = Inbound(self._speaker.place(), self._speaker.user, event_id, text, private=True)
        notice = (await self._receive(inbound)).notice
        if notice is not None:
            self._print([("", printable(notice))])
            await self.finished(inbound.place, event_id)

    async def _tick(self) -> None:
        """Keep the clock of the progress line going while something is open."""
        while self._pending:
            self._session.app.invalidate()
            await anyio.sleep(TICK_S)

    def _prompt(self) -> FormattedText:
        """The prompt, under a line of progress while something takes longer than a moment."""
        elapsed_s = time.monotonic() - self._busy_since
        if not self._pending or elapsed_s < TICK_S:
            return FormattedText([("class:prompt", PROMPT)])
        turn = SPINNER[int(elapsed_s / TICK_S) % len(SPINNER)]
        width = self._session.output.get_size().columns - 16
        doing = (self._progress or ("answering" if self._answer else "working"))[: max(width, 10)]
        answer = "".join(f"{line[: width + 14]}\n" for line in self._answer)
        line = f"{turn} {doing}  {elapsed_s:.0f} s · Ctrl-C stops\n"
        return FormattedText([("", answer), ("class:progress", line), ("class:prompt", PROMPT)])

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        typing = has_focus(DEFAULT_BUFFER)

        @bindings.add("c-c", filter=typing)
        @bindings.add(Keys.SIGINT)
        def stop_or_clear(event: KeyPressEvent) -> None:
            self._interrupt(event)

        @bindings.add("enter", filter=typing)
        def send_or_continue(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if not buffer.document.text.endswith("\\"):
                buffer.validate_and_handle()
                return
            buffer.cursor_position = len(buffer.text)
            if not buffer.text.startswith(("$", "/run ")):
                # A shell joins the lines by itself and needs its backslash; other text does not contain it.
                buffer.delete_before_cursor(1)
            buffer.insert_text("\n")

        @bindings.add("escape", "enter", filter=typing)
        def next_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        return bindings

    def _interrupt(self, event: KeyPressEvent) -> None:
        if self._tasks is None:
            return
        if self._pending:
            self._tasks.start_soon(self._hand_over, "/stop")
        elif event.current_buffer.text:
            event.current_buffer.reset()
        else:
            self._print([("class:quiet", "Nothing is running. Ctrl-D ends the chat.")])

    async def send(self, message: Outbound) -> None:
        """Print one reply above the prompt; long blocks are cut, files are saved and named."""
        text = styled(message)
        if message.place != self._speaker.place():
            text.insert(0, ("class:quiet", f"[{printable(self._speaker.shown(message.place))}]\n"))
        for attachment in message.files:
            text.append(("class:quiet", "\n" + await self._saved(attachment)))
        if message.buttons:
            text.append(("class:quiet", "\n" + printable(choices(message.buttons))))
        self._print(text)

    async def _saved(self, attachment: Attachment) -> str:
        try:
            path = await to_thread.run_sync(self._attachments.save, attachment)
        except OSError as error:
            return f"  {printable(attachment.name)} could not be saved: {error.strerror}"
        return f"  {printable(attachment.name)} is saved as {path}"

    def _print(self, text: Sequence[tuple[str, str]]) -> None:
        """Print above the prompt without leaving raw mode, in which no key is lost that is typed meanwhile."""
        app = self._session.app
        if app.is_running:
            app.renderer.erase()
        print_formatted_text(
            self._session.output, FormattedText([*text, ("", "\n")]), STYLE, color_depth=app.color_depth
        )
        if app.is_running:
            app.renderer.reset()
            app.renderer.request_absolute_cursor_position()
            app.invalidate()

    async def progress(self, place: Place, text: str) -> None:
        """Show above the prompt what is going on, and the newest line of what comes of it; of an answer several."""
        if place == self._speaker.place():
            title, _, rest = printable(text).partition("\n")
            lines = rest.strip().splitlines()
            self._progress = " · ".join([title[:TITLE_WIDTH], *lines[-1:]]) if title else ""
            self._answer = [] if title else lines[-ANSWER_LINES:]

    async def finished(self, place: Place, event_id: str) -> None:
        """Clear the progress line once nothing is open."""
        self._pending.end(event_id)
        if not self._pending and place == self._speaker.place():
            self._progress, self._answer = "", []
            self._session.app.invalidate()


class _History(FileHistory):
    """A file of what was typed, as ``kept`` leaves it; in this run all of it is known."""

    def __init__(self, path: str, kept: Callable[[str], str]) -> None:
        self._kept = kept
        super().__init__(path)

    def store_string(self, string: str) -> None:
        super().store_string(self._kept(string))


def open_history(path: str, kept: Callable[[str], str] = str) -> History:
    """What was typed before, readable by its owner alone; kept for this run only where the file cannot be used.

    ``kept`` says what of a text is written down.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.chmod(path, 0o600)
    except OSError:
        return InMemoryHistory()
    return _History(path, kept)
