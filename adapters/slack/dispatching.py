"""What is delivered, in either mode, goes through slack-bolt: it proves who sent it and answers Slack's own questions.

A delivery is acknowledged only after it has been handed on; Slack delivers what was not again.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.context.ack.async_ack import AsyncAck
from slack_bolt.response import BoltResponse

from adapters.slack.client import QUIET, Me

Take = Callable[[Mapping[str, Any]], Awaitable[None]]
_EVERY = re.compile("")
_log = logging.getLogger(__name__)


def make_app(me: Me, take: Take, signing_secret: str | None = None) -> AsyncApp:
    """Make what deliveries are given to; without a secret it takes those of a socket only."""

    async def authorize() -> AuthorizeResult:
        # What is sent is sent by clients of this adapter's own.
        return AuthorizeResult(
            enterprise_id=None,
            team_id=me.team,
            bot_user_id=me.user,
            bot_id=me.bot,
            bot_token="-",  # noqa: S106
        )

    app = AsyncApp(
        name="takeback",
        logger=QUIET,
        signing_secret=signing_secret or "",
        authorize=authorize,
        process_before_response=True,
    )

    async def hand_on(body: Mapping[str, Any], ack: AsyncAck) -> BoltResponse:
        try:
            await take(body)
        except Exception:  # noqa: BLE001 - whatever kept it from being stored may pass
            _log.exception("an event was not taken in; Slack delivers it again")
            return BoltResponse(status=503)
        return await ack()

    app.event(_EVERY)(hand_on)
    app.command(_EVERY)(hand_on)
    app.action(_EVERY)(hand_on)
    return app
