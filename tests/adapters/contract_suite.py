"""What every adapter has to do, as test classes over a `Scene`: one platform, one person, the adapter between.

A test module gives a fixture ``scene`` and derives from `EveryAdapter` and from the classes that fit its
platform: `Repeats`, `Edits`, `Presses`, `OfferedFiles`, `Refusals`. A console has
none of these and derives from the first alone.
"""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol

import anyio
import pytest

from adapters.contract import (
    Adapter,
    Attachment,
    Button,
    Inbound,
    Outbound,
    Part,
    Reception,
    SendFailed,
    Style,
)

ODD = 'a_b*c*[d](e) <i>&amp;</i> `x` ~~y~~ ```z``` \\n {0} 100% "q" é 漢字 😀 my_file_[1].py <x>&.txt'
"""Text that some markup would take for its own."""

TOKEN = "0123456789abcdef0123456789abcdef"


class Scene(Protocol):
    """A person on a platform, and the adapter under test; every platform's tests bring their own."""

    adapter: Adapter

    async def write(self, text: str) -> None:
        """Let the person send a message to the bot."""

    async def until_seen(self, text: str) -> None:
        """Wait until the person can read something."""

    def seen(self) -> str:
        """Everything that the person can read, in order, without markup; text files included."""

    def files(self) -> dict[str, bytes]:
        """The files that reached the person."""


class RepeatingScene(Scene, Protocol):
    """A platform that delivers again what was not acknowledged."""

    async def repeat(self) -> None:
        """Deliver the last message once more, as if the acknowledgement had been lost."""


class EditingScene(Scene, Protocol):
    """A platform on which people edit what they sent."""

    async def edit(self, text: str) -> None:
        """Let the person change the last message."""


class ButtonScene(Scene, Protocol):
    """A platform with buttons."""

    async def press(self, label: str) -> None:
        """Let the person press a button that they see."""

    async def until_no_button(self) -> None:
        """Wait until no button can be pressed any more."""


class FileScene(Scene, Protocol):
    """A platform on which people send files."""

    async def attach(self, name: str, content: bytes, text: str) -> None:
        """Let the person send a file with a text."""


class RefusingScene(Scene, Protocol):
    """A platform that can be made to refuse."""

    def refuse_once(self, retry_after_s: float) -> None:
        """Refuse the next message, with the platform's word on when to try again."""


class FarSide:
    """The gateway's side of the contract: keeps what it is given, and answers as a test says."""

    def __init__(self) -> None:
        self.received: list[Inbound] = []
        self.receptions: deque[Reception | Exception] = deque()
        self._waiting: deque[Inbound] = deque()
        self._changed = anyio.Event()

    async def receive(self, inbound: Inbound) -> Reception:
        self.received.append(inbound)
        reception = self.receptions.popleft() if self.receptions else Reception()
        if not isinstance(reception, Exception):
            self._waiting.append(inbound)
        self._changed.set()
        self._changed = anyio.Event()
        if isinstance(reception, Exception):
            raise reception
        return reception

    async def next(self) -> Inbound:
        """Wait for the next message that was taken or refused."""
        while not self._waiting:
            await self._changed.wait()
        return self._waiting.popleft()


@asynccontextmanager
async def listening(scene: Scene) -> AsyncIterator[FarSide]:
    """Run the adapter until the block ends."""
    far = FarSide()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scene.adapter.run, far.receive)
            yield far
            tasks.cancel_scope.cancel()


async def answer(scene: Scene, inbound: Inbound, *parts: str | Part, **more: tuple) -> None:
    """Send a reply to a message."""
    marked = tuple(Part(part) if isinstance(part, str) else part for part in parts)
    await scene.adapter.send(Outbound(inbound.place, marked, reply_to=inbound.event_id, **more))


async def finish(scene: Scene, inbound: Inbound) -> None:
    await scene.adapter.finished(inbound.place, inbound.event_id)


class EveryAdapter:
    """What holds on every platform."""

    async def test_a_message_says_who_wrote_it_and_where(self, scene: Scene) -> None:
        async with listening(scene) as far:
            await scene.write("hello there")
            inbound = await far.next()

        assert inbound.text == "hello there"
        assert inbound.place.adapter == scene.adapter.name
        assert all((inbound.place.chat, inbound.user, inbound.event_id, inbound.addressed))
        assert (inbound.edited, inbound.pressed, inbound.files, inbound.offered) == (False, None, (), ())

    async def test_messages_come_in_order_each_with_an_event_of_its_own(self, scene: Scene) -> None:
        async with listening(scene) as far:
            for number in range(3):
                await scene.write(f"message {number}")
            received = []
            for _ in range(3):
                received.append(await far.next())
                await finish(scene, received[-1])

        assert [inbound.text for inbound in received] == ["message 0", "message 1", "message 2"]
        assert len({inbound.event_id for inbound in received}) == 3
        assert len({inbound.place for inbound in received}) == 1

    @pytest.mark.parametrize("style", [Style.PLAIN, Style.BOLD, Style.CODE, Style.BLOCK])
    async def test_odd_text_is_shown_as_it_is_in_every_style(self, scene: Scene, style: Style) -> None:
        async with listening(scene) as far:
            await scene.write("odd")
            await answer(scene, await far.next(), Part(ODD, style))
            await scene.until_seen(ODD)

    async def test_nothing_of_a_long_reply_is_lost(self, scene: Scene) -> None:
        lines = [f"line {number}: {'word ' * 12}" for number in range(250)]
        async with listening(scene) as far:
            await scene.write("long")
            await answer(scene, await far.next(), "\n".join(lines))
            await scene.until_seen("line 249:")

        places = [scene.seen().find(f"line {number}: word") for number in range(250)]
        assert -1 not in places
        assert places == sorted(places)

    async def test_a_file_reaches_the_person_byte_by_byte(self, scene: Scene) -> None:
        content = "".join(f"+{number} ```\n" for number in range(1000)).encode()
        async with listening(scene) as far:
            await scene.write("diff")
            await answer(scene, await far.next(), "the head", files=(Attachment("all.diff", content),))
            await scene.until_seen("the head")

        assert content in scene.files().values()

    async def test_a_button_says_what_it_does_or_what_to_type(self, scene: Scene) -> None:
        async with listening(scene) as far:
            await scene.write("show")
            buttons = tuple(
                Button(f"Choice {number}", f"/choose {number}", token=f"{number:032}") for number in range(40)
            )
            await answer(scene, await far.next(), "choose:", buttons=buttons)
            await scene.until_seen("choose:")
            await scene.until_seen("Choice 0" if scene.adapter.has_buttons else "/choose 0")

    async def test_a_notice_is_shown_and_the_next_message_comes(self, scene: Scene) -> None:
        async with listening(scene) as far:
            far.receptions.append(Reception(f"not for you: {ODD}"))
            await scene.write("secret")
            await far.next()
            await scene.until_seen(f"not for you: {ODD}")
            await scene.write("next")
            assert (await far.next()).text == "next"

    async def test_progress_gives_way_to_the_reply(self, scene: Scene) -> None:
        async with listening(scene) as far:
            await scene.write("work")
            inbound = await far.next()
            for step in range(5):
                await scene.adapter.progress(inbound.place, f"terminal: make\nstep {step}")
            await scene.adapter.progress(inbound.place, "")
            await answer(scene, inbound, "all done")
            await scene.until_seen("all done")

    async def test_the_end_of_an_unknown_message_is_no_error(self, scene: Scene) -> None:
        async with listening(scene) as far:
            await scene.write("hello")
            inbound = await far.next()
            await finish(scene, replace(inbound, event_id="of an earlier run"))
            await answer(scene, inbound, "still here")
            await scene.until_seen("still here")


class Repeats:
    """What holds where the platform delivers again what was not acknowledged."""

    async def test_a_repeated_message_has_the_same_event(self, scene: RepeatingScene) -> None:
        async with listening(scene) as far:
            await scene.write("once")
            first = await far.next()
            await scene.repeat()
            again = await far.next()

        assert (again.event_id, again.text, again.place) == (first.event_id, "once", first.place)

    async def test_what_could_not_be_stored_comes_again(self, scene: RepeatingScene) -> None:
        async with listening(scene) as far:
            far.receptions.append(OSError("the disk is full"))
            await scene.write("keep me")
            inbound = await far.next()

        assert inbound.text == "keep me"
        assert [received.event_id for received in far.received] == [inbound.event_id] * len(far.received)
        assert len(far.received) >= 2


class Edits:
    """What holds where people can edit their messages."""

    async def test_an_edited_message_says_so(self, scene: EditingScene) -> None:
        async with listening(scene) as far:
            await scene.write("/rollback 1")
            first = await far.next()
            await scene.edit("/rollback 2")
            edited = await far.next()

        assert (edited.text, edited.edited, edited.place) == ("/rollback 2", True, first.place)


class Presses:
    """What holds where people can press buttons."""

    async def test_a_press_brings_the_token_and_says_who_and_where(self, scene: ButtonScene) -> None:
        async with listening(scene) as far:
            await scene.write("show")
            inbound = await far.next()
            await answer(scene, inbound, "choose:", buttons=(Button("Diff", "/diff", token=TOKEN),))
            await scene.until_seen("choose:")
            await scene.press("Diff")
            pressed = await far.next()

        assert (pressed.pressed, pressed.text) == (TOKEN, "")
        assert (pressed.user, pressed.place) == (inbound.user, inbound.place)
        assert pressed.event_id != inbound.event_id

    async def test_buttons_that_have_had_their_use_go(self, scene: ButtonScene) -> None:
        async with listening(scene) as far:
            await scene.write("show")
            buttons = (Button("Run", "/approve 1", token=TOKEN), Button("Deny", "/deny 1", token=TOKEN[::-1]))
            await answer(scene, await far.next(), "may I?", buttons=buttons)
            await scene.until_seen("may I?")
            far.receptions.append(Reception(spent=True))
            await scene.press("Run")
            await far.next()
            await scene.until_no_button()


class OfferedFiles:
    """What holds where people can send files."""

    async def test_a_file_is_offered_and_fetched_when_asked_for(self, scene: FileScene) -> None:
        async with listening(scene) as far:
            await scene.attach("notes.txt", b"\x00\xffbytes", "look at this")
            inbound = await far.next()
            (offered,) = inbound.offered
            content = await offered.fetch()

        assert (inbound.text, offered.name, content) == ("look at this", "notes.txt", b"\x00\xffbytes")
        assert offered.size_bytes in {None, 7}


class Refusals:
    """What holds where the platform asks to wait."""

    async def test_the_platforms_own_word_on_when_to_try_again_is_handed_on(self, scene: RefusingScene) -> None:
        async with listening(scene) as far:
            await scene.write("hello")
            inbound = await far.next()
            scene.refuse_once(33.0)
            with pytest.raises(SendFailed) as failed:
                await answer(scene, inbound, "too fast")
            await answer(scene, inbound, "in time")
            await scene.until_seen("in time")

        assert failed.value.retry_after_s == 33.0
