"""What goes on is shown at a platform's pace, the latest word, and is gone when it is over."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from adapters.contract import Part, Place, SendFailed, Style
from adapters.pacing import SAID_FROM_S, Pacer, Stopwatch, parts_of
from adapters.pages import Room

ONE = Place("paper", "1")
TWO = Place("paper", "2")


class Paper:
    """A screen that keeps what it is told, and fails as it is told to."""

    def __init__(self) -> None:
        self.every_s = 0.05
        self.again_s = 0.15
        self.done: list[tuple[str, float]] = []
        self.faults: dict[str, list[SendFailed]] = {}
        self.slow = anyio.Event()
        self.slow.set()
        self._stirred = anyio.Event()

    @property
    def shown(self) -> list[str]:
        return [what for what, _ in self.done if what not in ("hint", "clear")]

    async def hint(self) -> None:
        await self._do("hint")

    async def show(self, text: str) -> None:
        await self.slow.wait()
        await self._do(text)

    async def clear(self) -> None:
        await self._do("clear")

    async def until(self, what: str, times: int = 1) -> None:
        with anyio.fail_after(5):
            while sum(text == what for text, _ in self.done) < times:
                self._stirred = anyio.Event()
                await self._stirred.wait()

    async def _do(self, what: str) -> None:
        self.done.append((what, anyio.current_time()))
        self._stirred.set()
        if faults := self.faults.get(what):
            raise faults.pop()


class Stage:
    """A pacer, and the screens that it asked for."""

    def __init__(self) -> None:
        self.screens: dict[Place, Paper] = {ONE: Paper(), TWO: Paper()}
        self.pacer = Pacer(self.screens.__getitem__)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self.pacer.run)
            yield
            tasks.cancel_scope.cancel()


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_only_the_latest_word_is_shown_and_never_too_soon(stage):
    screen = stage.screens[ONE]
    async with stage.open():
        for number in range(50):
            await stage.pacer.show(ONE, f"first {number}")
        await screen.until("first 49")
        for number in range(50):
            await stage.pacer.show(ONE, f"then {number}")
        await screen.until("then 49")
        await stage.pacer.show(ONE, "")
        await screen.until("clear")

    assert screen.shown == ["first 49", "then 49"]
    at = [moment for what, moment in screen.done if what in screen.shown]
    assert at[1] - at[0] >= screen.every_s


async def test_what_ends_within_a_moment_shows_no_word(stage):
    async with stage.open():
        await stage.pacer.show(ONE, "quick")
        await stage.screens[ONE].until("hint")
        await stage.pacer.show(ONE, "")

    assert stage.screens[ONE].shown == []


async def test_what_fades_is_shown_anew(stage):
    async with stage.open():
        await stage.pacer.show(ONE, "same")
        await stage.screens[ONE].until("same", times=3)


async def test_nothing_appears_once_it_has_ended(stage):
    screen = stage.screens[ONE]
    screen.slow = anyio.Event()
    ended = anyio.Event()

    async def end() -> None:
        await stage.pacer.show(ONE, "")
        ended.set()

    async with stage.open(), anyio.create_task_group() as tasks:
        await stage.pacer.show(ONE, "slow")
        await screen.until("hint")
        await anyio.sleep(2 * screen.every_s)
        tasks.start_soon(end)
        await anyio.wait_all_tasks_blocked()
        waited = not ended.is_set()
        screen.slow.set()
        await screen.until("clear")

    assert waited
    assert [what for what, _ in screen.done] == ["hint", "slow", "clear"]


async def test_a_place_that_is_to_be_left_alone_waits_for_itself_only(stage):
    stage.screens[ONE].faults["hint"] = [SendFailed("too many", retry_after_s=30.0)]
    async with stage.open():
        await stage.pacer.show(ONE, "one")
        await stage.screens[ONE].until("hint")
        await stage.pacer.show(TWO, "two")
        await stage.screens[TWO].until("two", times=3)
        await stage.pacer.show(ONE, "")
        await stage.screens[ONE].until("clear")

    assert [what for what, _ in stage.screens[ONE].done] == ["hint", "clear"]


async def test_a_trouble_is_followed_by_another_attempt(stage):
    stage.screens[ONE].faults["word"] = [SendFailed("lost", retry_after_s=None)]
    async with stage.open():
        await stage.pacer.show(ONE, "word")
        await stage.screens[ONE].until("word", times=2)


@pytest.mark.parametrize(("wait_s", "times"), [(0.0, 2), (None, 1)])
async def test_taking_away_is_tried_once_more_where_that_is_of_use(stage, wait_s, times):
    stage.screens[ONE].faults["clear"] = [SendFailed("no", retry_after_s=wait_s) for _ in range(2)]
    async with stage.open():
        await stage.pacer.show(ONE, "word")
        await stage.screens[ONE].until("word")
        await stage.pacer.show(ONE, "")
        await stage.screens[ONE].until("clear", times)

    assert stage.screens[ONE].done[-1][0] == "clear"
    assert sum(what == "clear" for what, _ in stage.screens[ONE].done) == times


async def test_what_is_shown_when_the_adapter_stops_is_taken_away(stage):
    async with stage.open():
        await stage.pacer.show(ONE, "word")
        await stage.screens[ONE].until("word")

    assert stage.screens[ONE].done[-1][0] == "clear"


async def test_progress_after_the_end_is_dropped(stage):
    async with stage.open():
        pass
    await stage.pacer.show(ONE, "too late")

    assert stage.screens[ONE].done == []


class Hands:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_lasts_is_told_its_time_and_the_next_thing_its_own():
    hands = Hands()
    watch = Stopwatch(hands)
    assert watch.timed("make") == "make"
    hands.now += SAID_FROM_S + 7.9
    assert watch.timed("make") == "make · 12 s"
    hands.now += 60
    assert watch.timed("make") == "make · 1 min 12 s"
    assert watch.timed("ls") == "ls"


def test_what_came_of_it_is_shown_in_its_newest_part_and_so_is_an_answer():
    def shown(text: str) -> list[Part]:
        return parts_of(text, Stopwatch(), most_output=10, answer=Room(20))

    assert shown("make\nline 1\nline 2") == [Part("make"), Part("e 1\nline 2", Style.BLOCK)]
    assert shown("\nmake it so") == [Part("make it so")]
    assert shown("\nthis answer is longer than what is shown") == [Part("… than what is shown")]
    assert shown("\n" + "语" * 30 + "言") == [Part("… " + "语" * 19 + "言")]


def test_the_end_of_an_answer_is_measured_as_the_platform_measures():
    def shown(text: str, longest: int) -> list[Part]:
        in_bytes = Room(longest, lambda part: len(part.text.encode()))
        return parts_of(text, Stopwatch(), most_output=10, answer=in_bytes)

    assert shown("\néééé ééé ééé", 30) == [Part("éééé ééé ééé")]
    assert shown("\néééé ééé ééé", 16) == [Part("… ééé ééé")]
    assert shown("\néééé ééé ééé", 1) == [Part("… ")]
    assert shown("\nhalf \ud83d", 30) == [Part("half \ufffd")]
