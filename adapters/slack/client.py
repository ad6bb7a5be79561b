"""The client of Slack's Web API, and what its refusals mean in the contract's words.

Nothing said here repeats a token, or more than the host of an address that was called.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeGuard

from aiohttp import ClientConnectorError, ClientError
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient

from adapters.contract import ConnectionFailed, SendFailed
from adapters.link import Trouble

CALL_S = 60
"""How long a call may take, the upload of a file among them."""

SEND_AGAIN_S = 5.0
"""When a reply is tried again that got lost on the way."""

REFUSALS = (SlackClientError, ClientError, asyncio.TimeoutError, OSError)
"""Whatever can come of a call."""

LACKING = "missing_scope"
_BAD_TOKENS = frozenset(
    {
        *("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", LACKING),
        *("not_allowed_token_type", "no_permission", "access_denied", "team_access_not_granted"),
    }
)
_MAY_PASS = frozenset(
    {
        *("ratelimited", "rate_limited", "request_timeout", "service_unavailable", "internal_error", "fatal_error"),
        *("team_added_to_org", "accesslimited"),
    }
)
_UNREADABLE = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})
_NOT_MEMBER = frozenset({"not_in_channel", "channel_not_found"})

QUIET = logging.getLogger("adapters.slack.library")
"""What Slack's library logs; at its finer levels it would tell what people write."""
QUIET.setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Me:
    """Who the app is."""

    team: str
    user: str
    bot: str


class Client:
    """The calls of one app. It keeps nothing open: replies are sent before and after messages are taken in too."""

    def __init__(self, token: str, api_base: str) -> None:
        common: dict[str, Any] = {"base_url": api_base, "timeout": CALL_S, "logger": QUIET}
        self.web = AsyncWebClient(token, retry_handlers=[], **common)
        """For replies, which are stored: when Slack asks to wait, whoever stored them waits."""
        waiting = [AsyncConnectionErrorRetryHandler(), AsyncRateLimitErrorRetryHandler(max_retry_count=2)]
        self.patient = AsyncWebClient(token, retry_handlers=waiting, **common)
        """For what is said once and not stored: it waits as long as Slack asks."""

    async def who(self) -> Me:
        """Ask Slack who the app is."""
        answer = await self.web.auth_test()
        return Me(str(answer["team_id"]), str(answer["user_id"]), str(answer.get("bot_id") or ""))


def diagnose(error: Exception) -> Trouble:
    """Say why messages cannot be taken in."""
    if is_refused(error):
        return Trouble(ConnectionFailed(_remedy(error), permanent=True))
    failure = ConnectionFailed(f"Slack cannot be reached: {reason_of(error)}", permanent=False)
    return Trouble(failure, passing=may_pass(error), wait_s=retry_after_s(error))


def send_failure(error: Exception) -> SendFailed:
    """Say why a reply did not arrive, and when it may be tried again."""
    wait_s = retry_after_s(error)
    if wait_s is not None:
        return SendFailed("too many messages", retry_after_s=wait_s)
    if not isinstance(error, SlackApiError) or may_pass(error):
        return SendFailed(reason_of(error), retry_after_s=SEND_AGAIN_S)
    if is_refused(error):
        return SendFailed(_remedy(error), retry_after_s=60.0)
    if is_outside(error):
        reason = f"the app is not in this channel; /invite it there ({error_of(error)})"
        return SendFailed(reason, retry_after_s=None)
    return SendFailed(reason_of(error), retry_after_s=None)


def is_refused(error: Exception) -> TypeGuard[SlackApiError]:
    """Whether Slack does not take the token, or not for this call."""
    return isinstance(error, SlackApiError) and error_of(error) in _BAD_TOKENS


def is_outside(error: Exception) -> bool:
    """Whether the app may not write where it tried to, because it is no member."""
    return isinstance(error, SlackApiError) and error_of(error) in _NOT_MEMBER


def is_unreadable(error: Exception) -> bool:
    """Whether Slack does not take a message as it is marked up."""
    return isinstance(error, SlackApiError) and error_of(error) in _UNREADABLE


def may_pass(error: Exception) -> bool:
    """Whether a call that failed so may succeed when it is made again."""
    if not isinstance(error, SlackApiError):
        return True
    return error_of(error) in _MAY_PASS or _status(error) >= HTTPStatus.INTERNAL_SERVER_ERROR


def retry_after_s(error: Exception) -> float | None:
    """Slack's own word on when to call again, if that is what it says."""
    if not isinstance(error, SlackApiError) or error_of(error) not in {"ratelimited", "rate_limited"}:
        return None
    headers = {key.lower(): value for key, value in error.response.headers.items()}
    try:
        return float(headers["retry-after"])
    except (KeyError, ValueError):
        return SEND_AGAIN_S


def error_of(error: SlackApiError) -> str:
    """The name that Slack gives to what is wrong."""
    return str(_data(error).get("error") or "")


def reason_of(error: Exception) -> str:
    """What Slack, or the way to it, said."""
    if isinstance(error, SlackApiError):
        named, needed = error_of(error), _data(error).get("needed")
        said = f"{named}, needed: {needed}" if needed else named or f"HTTP {_status(error)}"
        return "".join(mark for mark in said if mark.isprintable())[:200]
    if isinstance(error, SlackClientError):
        return "the answer is not Slack's; see slack.api_base"
    if isinstance(error, ClientConnectorError):
        return f"no connection to {error.host}:{error.port} ({error.os_error.strerror})"
    return type(error).__name__


def _remedy(error: SlackApiError) -> str:
    """What to do about a token that is refused."""
    # Both are used by the same client; only this call takes the other one.
    of_app = str(getattr(error.response, "api_url", "")).endswith("apps.connections.open")
    key, page = ("app_token", "Basic Information") if of_app else ("bot_token", "OAuth & Permissions")
    if error_of(error) == LACKING:
        again = "make a token with it" if of_app else "add it and install the app again"
        return (
            f"Slack refuses a call because slack.{key} lacks a scope ({reason_of(error)}). On the app's page {page}"
            f" {again}; should the token be another one then, copy it to slack.{key}, and start the gateway again;"
            " gateway doctor checks it"
        )
    return (
        f"Slack refuses slack.{key} ({reason_of(error)}). Copy it from the app's page {page} to slack.{key},"
        f" TAKEBACK_SLACK__{key.upper()} or the file that TAKEBACK_SLACK__{key.upper()}_FILE names, and start the"
        " gateway again; gateway doctor checks it"
    )


def _data(error: SlackApiError) -> Mapping[str, Any]:
    # What is no JSON object came from a proxy or another server; then the response is not even Slack's own class.
    data = getattr(error.response, "data", None)
    return data if isinstance(data, Mapping) else {}


def _status(error: SlackApiError) -> int:
    return int(getattr(error.response, "status_code", 0) or getattr(error.response, "status", 0))
