"""The prompt: what people type, what they see, what Ctrl-C and Ctrl-D do."""

import io
import os
import pty
import re
import stat
import termios

import anyio
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from adapters.console.attachments import AttachmentDirectory
from adapters.console.completion import CommandCompleter, Suggestion
from adapters.console.pending import Speaker
from adapters.console.styles import LONGEST_BLOCK_LINES
from adapters.console.terminal import Aids, Terminal, open_history
from adapters.contract import Attachment, Button, Outbound, Part, Place, Style

pytestmark = pytest.mark.anyio

CTRL_C, CTRL_D, ENTER, ALT_ENTER = "\x03", "\x04", "\r", "\x1b\r"
SUGGESTIONS = (
    Suggestion("/rollback", "list"),
    Suggestion("/rollback diff <N>", "preview"),
    Suggestion("/rollback undo", "undo"),
    Suggestion("/redo", "redo"),
)


class Screen(io.StringIO):
    """What was written to the terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._awaited: list[tuple[str, anyio.Event]] = []

    def flush(self) -> None:
        for text, event in self._awaited:
            if text in self.shown():
                event.set()

    async def shows(self, text: str) -> None:
        """Return once the text has been written."""
        event = anyio.Event()
        self._awaited.append((text, event))
        self.flush()
        await event.wait()

    def isatty(self) -> bool:
        return True

    def shown(self) -> str:
        """The text without control sequences."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue()).replace("\r", "")


class Desk:
    """A terminal with a keyboard to press and a screen to look at."""

    def __init__(self, keyboard, directory, screen=None):
        self.keyboard = keyboard
        self.screen = screen or Screen()
        output = Vt100_Output(
            self.screen,
            lambda: Size(rows=50, columns=100),
            default_color_depth=ColorDepth.DEPTH_4_BIT,
            enable_cpr=False,
        )
        self.history = InMemoryHistory()
        self.adapter = Terminal(
            keyboard,
            output,
            AttachmentDirectory(str(directory / "attachments")),
            Speaker(),
            Aids("welcome", self.history, CommandCompleter(SUGGESTIONS)),
        )

    def press(self, *keys: str) -> None:
        for key in keys:
            self.keyboard.send_text(key)


@pytest.fixture
def desk(tmp_path):
    with create_pipe_input() as keyboard:
        yield Desk(keyboard, tmp_path)


async def test_a_line_is_a_message_and_ctrl_d_ends(desk, converse):
    async def hello(answering, inbound):
        await answering.say(inbound, "nice to see you")
        desk.press(CTRL_D)

    desk.press("hello", ENTER)

    answering = await converse(desk.adapter, hello=hello)

    assert [message.text for message in answering.received] == ["hello"]
    assert "welcome" in desk.screen.shown()
    assert "nice to see you" in desk.screen.shown()
    assert list(desk.history.get_strings()) == ["hello"]


async def test_no_key_is_lost_that_is_typed_while_something_is_printed(tmp_path, converse):
    main, side = pty.openpty()
    cooked = []

    class Watching(Screen):
        """A terminal that is not raw takes Ctrl-D and Ctrl-C for itself: notes what is printed then."""

        def flush(self) -> None:
            if self.shown() and termios.tcgetattr(side)[3] & (termios.ICANON | termios.ISIG):
                cooked.append(self.shown())
            super().flush()

    async def hello(answering, inbound):
        await answering.say(inbound, "first")
        await answering.say(inbound, "second")
        os.write(main, CTRL_D.encode())

    os.write(main, f"hello{ENTER}".encode())
    with os.fdopen(side) as keyboard:
        await converse(Desk(Vt100Input(keyboard), tmp_path, Watching()).adapter, hello=hello)
        assert cooked == []
        assert termios.tcgetattr(side)[3] & termios.ICANON
    os.close(main)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (("/write a.txt", ALT_ENTER, "one", ALT_ENTER, "two"), "/write a.txt\none\ntwo"),
        (("/write a.txt\\", ENTER, "one"), "/write a.txt\none"),
        (("$ echo a \\", ENTER, "b"), "$ echo a \\\nb"),
        (("\x1b[200~/write a\none\ntwo\x1b[201~",), "/write a\none\ntwo"),
    ],
)
async def test_a_message_of_several_lines_can_be_typed_or_pasted(desk, converse, keys, text):
    async def end(answering, inbound):
        desk.press(CTRL_D)

    desk.press(*keys, ENTER)

    answering = await converse(desk.adapter, **{text: end})

    assert answering.received[0].text == text


async def test_ctrl_c_stops_the_running_turn_and_the_chat_goes_on(desk, converse):
    stopped = anyio.Event()

    async def work(answering, inbound):
        await answering.adapter.progress(inbound.place, "terminal: make\nline one\nbuilding part 7")
        await desk.screen.shows("terminal: make · building part 7")
        desk.press(CTRL_C)
        await stopped.wait()
        await answering.say(inbound, "stopped at part 7")

    async def stop(answering, inbound):
        stopped.set()
        desk.press("after", ENTER)

    async def after(answering, inbound):
        desk.press(CTRL_D)

    desk.press("work", ENTER)

    answering = await converse(desk.adapter, work=work, **{"/stop": stop}, after=after)

    assert [message.text for message in answering.received] == ["work", "/stop", "after"]
    assert "stopped at part 7" in desk.screen.shown()


async def test_an_answer_is_seen_while_it_is_written_and_printed_once(desk, converse):
    async def work(answering, inbound):
        await answering.adapter.progress(inbound.place, "\nfirst\nthe second line \x1b[2J")
        await desk.screen.shows("the second line \\x1b[2J")
        await desk.screen.shows("answering")
        await answering.say(inbound, "the whole answer")
        desk.press(CTRL_D)

    desk.press("work", ENTER)

    await converse(desk.adapter, work=work)

    assert desk.screen.shown().count("the whole answer") == 1


async def test_ctrl_c_clears_the_line_and_says_how_to_end_when_nothing_runs(desk, converse):
    async def end(answering, inbound):
        desk.press(CTRL_D)

    async def press():
        desk.press("half a thought", CTRL_C, CTRL_C)
        await desk.screen.shows("Ctrl-D ends")
        desk.press("end", ENTER)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(press)
        answering = await converse(desk.adapter, end=end)

    assert [message.text for message in answering.received] == ["end"]


async def test_a_diff_has_colours_and_a_long_one_is_cut(desk, converse, tmp_path):
    diff = "diff --git a/x b/x\n@@ -1 +1 @@\n-old\n+new\n" + "+line\n" * 5000

    async def show(answering, inbound):
        await answering.say(
            inbound,
            Part("Changed:"),
            Part(diff, Style.DIFF),
            files=(Attachment("turn.diff", diff.encode()),),
            buttons=(Button("Undo", "/undo"),),
        )
        desk.press(CTRL_D)

    desk.press("show", ENTER)

    await converse(desk.adapter, show=show)

    assert "\x1b[0;31m-old" in desk.screen.getvalue()
    assert "\x1b[0;32m+new" in desk.screen.getvalue()
    shown = desk.screen.shown()
    assert shown.count("+line") == LONGEST_BLOCK_LINES - 4
    assert "… 4,804 more lines" in shown
    assert "Undo: /undo" in shown
    (saved,) = (tmp_path / "attachments").iterdir()
    assert f"turn.diff is saved as {saved}" in shown
    assert saved.read_text() == diff


async def test_no_reply_can_steer_the_terminal(desk, converse):
    async def odd(answering, inbound):
        await answering.say(inbound, Part("\x1b]0;owned\x07", Style.CODE), Part("+\x1b[2J", Style.DIFF))
        desk.press(CTRL_D)

    desk.press("odd", ENTER)

    await converse(desk.adapter, odd=odd)

    assert "\x1b]0;owned" not in desk.screen.getvalue()
    assert "\x1b[2J" not in desk.screen.getvalue()
    assert "\\x1b]0;owned\\x07" in desk.screen.shown()


async def test_a_reply_to_another_chat_says_which(desk, converse):
    async def hello(answering, inbound):
        await desk.adapter.send(Outbound(Place("console", "other"), (Part("left over"),)))
        desk.press(CTRL_D)

    desk.press("hello", ENTER)

    await converse(desk.adapter, hello=hello)

    assert "[other]\nleft over" in desk.screen.shown()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/r", ["/rollback", "/redo"]),
        ("/rollback ", ["/rollback undo", "/rollback diff"]),
        ("/rollback d", ["/rollback diff"]),
        ("/rollback diff ", []),
        ("hello", []),
        ("/write a\n/r", []),
    ],
)
def test_commands_are_completed_word_by_word(typed, offered):
    completions = CommandCompleter(SUGGESTIONS).get_completions(Document(typed), CompleteEvent())

    assert sorted(completion.text for completion in completions) == sorted(offered)


def test_the_history_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "history"
    path.write_text("")
    path.chmod(0o644)

    open_history(str(path)).append_string("$ export SECRET=1")

    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert "SECRET" in path.read_text()


def test_the_history_keeps_of_a_text_what_it_is_told_to(tmp_path):
    history = open_history(str(tmp_path / "history"), lambda text: text.replace("hunter2", "***"))

    history.append_string("$ login hunter2")

    assert history.get_strings() == ["$ login hunter2"]
    assert "+$ login ***\n" in (tmp_path / "history").read_text()


def test_a_history_that_cannot_be_kept_lasts_for_the_run(tmp_path):
    assert isinstance(open_history(str(tmp_path)), InMemoryHistory)


async def test_a_notice_is_shown_and_the_prompt_goes_on(desk, converse):
    async def end(answering, inbound):
        desk.press(CTRL_D)

    desk.press("refuse me", ENTER, "end", ENTER)

    answering = await converse(desk.adapter, end=end)

    assert [message.text for message in answering.received] == ["end"]
    assert "You are\\x1b not admitted." in desk.screen.shown()
