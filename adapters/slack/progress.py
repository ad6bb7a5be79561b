"""Shows what is going on: one message that is changed and, in the end, deleted."""

from adapters.contract import Part, Place, Style
from adapters.pacing import Stopwatch, parts_of
from adapters.pages import Room, apart, divide
from adapters.slack.client import REFUSALS, Client, send_failure
from adapters.slack.places import Address
from adapters.slack.rendering import ROOM, said

EVERY_S = 1.5
"""The least time between two changes: Slack takes about fifty a minute."""

AGAIN_S = 10.0
"""Nothing that is shown here fades, but how long it has been going on is told anew."""

LONGEST = 300
ANSWER = Room(2000, ROOM.measure)
"""Characters of progress, and how much of an answer, the newest: a process that is killed leaves them there."""


class Message:
    """The message of one place."""

    every_s = EVERY_S
    again_s = AGAIN_S

    def __init__(self, client: Client, place: Place) -> None:
        self._web = client.web
        self._address = Address.of(place)
        self._ts: str | None = None
        self._shown: list[Part] = []
        self._watch = Stopwatch()

    async def hint(self) -> None:
        """Nothing: an app cannot be seen typing."""

    async def show(self, text: str) -> None:
        """Post the message, or change it if it says something else."""
        shown = parts_of(text, self._watch, most_output=LONGEST, answer=ANSWER)
        if shown == self._shown:
            return
        parts = [*shown, Part("…" if shown[-1].style is Style.BLOCK and shown[-1].text.strip() else "\n…")]
        words = said(divide(apart(parts), ROOM)[0])
        address = self._address
        try:
            if self._ts is None:
                words |= {"unfurl_links": False, "unfurl_media": False}
                sent = await self._web.chat_postMessage(channel=address.channel, thread_ts=address.thread, **words)
                self._ts = str(sent["ts"])
            else:
                await self._web.chat_update(channel=address.channel, ts=self._ts, **words)
        except REFUSALS as error:
            raise send_failure(error) from None
        self._shown = shown

    async def clear(self) -> None:
        """Delete the message."""
        if self._ts is None:
            return
        try:
            await self._web.chat_delete(channel=self._address.channel, ts=self._ts)
        except REFUSALS as error:
            raise send_failure(error) from None
