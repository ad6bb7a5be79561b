"""Which threads of channels the app takes part in: those in which it was named or has answered.

Slack is asked about a thread that is not known, so that nothing is lost by a restart.
"""

from dataclasses import replace

import anyio
from slack_sdk.errors import SlackApiError

from adapters.slack.client import Client, Me, may_pass
from adapters.slack.places import Address
from adapters.slack.reading import Event

MOST_KNOWN = 5000
MOST_PAGES = 3
PAGE = 200
"""How much of a thread is looked through."""

LOOK_S = 2.0
"""How long that may take: Slack waits three seconds for an acknowledgement."""


class Threads:
    """The threads that are known."""

    def __init__(self, client: Client, me: Me) -> None:
        self._web = client.web
        self._me = me
        self._known: dict[Address, bool] = {}

    async def settle(self, event: Event) -> Event:
        """Say whether a message is meant for the app because of where it stands.

        Raises:
            SlackClientError, ClientError, TimeoutError: it cannot be found out now.
        """
        address, inbound = event.address, event.inbound
        if inbound.private or address.thread is None:
            return event
        if inbound.addressed:
            self._learn(address, ours=True)
            return event
        begins = inbound.event_id == address.event(address.thread)
        # In a thread, an exclamation mark is for commands; this one is none.
        if begins or inbound.text.startswith("!"):
            return event
        if address not in self._known:
            with anyio.fail_after(LOOK_S):
                ours = await self._look(address, address.thread)
            self._learn(address, ours=ours)
        return replace(event, inbound=replace(inbound, addressed=True)) if self._known[address] else event

    def _learn(self, address: Address, *, ours: bool) -> None:
        self._known.pop(address, None)
        self._known[address] = ours
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    async def _look(self, address: Address, thread: str) -> bool:
        cursor = ""
        for _ in range(MOST_PAGES):
            try:
                page = await self._web.conversations_replies(
                    channel=address.channel, ts=thread, limit=PAGE, cursor=cursor or None
                )
            except SlackApiError as error:
                if may_pass(error):
                    raise
                return False  # the app may not read here
            for message in page["messages"]:
                if message.get("user") == self._me.user or f"<@{self._me.user}" in str(message.get("text")):
                    return True
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                break
        return False
