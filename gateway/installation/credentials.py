"""Asks a chat platform whether a token is good, and who it belongs to; nothing is sent to anybody.

For the set-up and for the doctor, which have no adapter running. No error holds the token. The client is imported when
it is used.
"""

import json
import re
from typing import Any

PATIENCE_S = 10.0


class TokenRefused(Exception):
    """The platform does not know this token; ``remedy`` says where a good one comes from."""

    def __init__(self, platform: str, reason: str, remedy: str) -> None:
        self.platform = platform
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{platform} refuses the token: {reason}")


class PlatformUnreachable(Exception):
    """The platform gave no answer that says anything about the token."""

    def __init__(self, platform: str, address: str, reason: str) -> None:
        self.platform = platform
        self.address = address
        self.reason = reason
        super().__init__(f"{platform} cannot be asked at {address}: {reason}")


FROM_BOTFATHER = "Get the bot's token from @BotFather: /mybots, then API Token."
FROM_SLACK = "Copy the tokens from the app's pages: OAuth & Permissions (xoxb-…), Basic Information (xapp-…)."

SLACK_MANIFEST = "deploy/slack/manifest.yaml"
SLACK_SCOPES = frozenset(
    {
        *("app_mentions:read", "channels:history", "chat:write", "chat:write.public", "commands", "files:read"),
        *("files:write", "groups:history", "im:history", "mpim:history"),
    }
)
"""What the manifest asks for, so that the bot token may do all that Takeback does."""


async def telegram_bot(token: str, api_base: str) -> str:
    """Return the name of the bot that a token belongs to, as ``@name``.

    Raises:
        TokenRefused: Telegram knows no such bot.
        PlatformUnreachable: nothing can be said of the token.
    """
    if not re.fullmatch(r"[0-9]+:[^\s:/?#]+", token):
        raise TokenRefused("Telegram", "it does not look like one", FROM_BOTFATHER)
    answer = await _call("Telegram", api_base, f"/bot{token}/getMe")
    if answer.get("ok") is not True:
        raise TokenRefused("Telegram", _words(answer.get("description")), FROM_BOTFATHER)
    return f"@{_words(_below(answer, 'result').get('username'))}"


async def slack_bot(token: str, api_base: str) -> str:
    """Return the bot's name and its team, as ``name in team``.

    Raises:
        TokenRefused: Slack does not accept the token.
        PlatformUnreachable: nothing can be said of the token.
    """
    answer = await _slack(token, api_base, "/auth.test")
    return f"{_words(answer.get('user'))} in {_words(answer.get('team'))}"


async def slack_lacks(token: str, api_base: str) -> tuple[str, ...]:
    """Return the scopes that the bot's token should have and has not, as far as Slack tells.

    Raises:
        TokenRefused: Slack does not accept the token.
        PlatformUnreachable: nothing can be said of the token.
    """
    headers: dict[str, str] = {}
    await _slack(token, api_base, "/auth.test", headers)
    granted = headers.get("x-oauth-scopes")
    return () if granted is None else tuple(sorted(SLACK_SCOPES - {scope.strip() for scope in granted.split(",")}))


async def slack_app(token: str, api_base: str) -> None:
    """See whether an app-level token may open the connection that messages come through.

    Raises:
        TokenRefused: Slack does not accept the token.
        PlatformUnreachable: nothing can be said of the token.
    """
    await _slack(token, api_base, "/apps.connections.open")


async def _slack(token: str, api_base: str, path: str, answered: dict[str, str] | None = None) -> dict[str, Any]:
    if not re.fullmatch(r"[!-~]+", token):
        raise TokenRefused("Slack", "it does not look like one", FROM_SLACK)
    answer = await _call("Slack", api_base, path, {"Authorization": f"Bearer {token}"}, answered)
    if answer.get("ok") is not True:
        raise TokenRefused("Slack", _words(answer.get("error")), FROM_SLACK)
    return answer


async def _call(
    platform: str,
    api_base: str,
    path: str,
    headers: dict[str, str] | None = None,
    answered: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Call a method; what is no JSON object says nothing of the token. ``answered`` takes the answer's headers."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
    try:
        # A proxy of the machine's is used, as the adapters do.
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=True) as session,
            session.post(api_base + path, headers=headers, allow_redirects=False) as response,
        ):
            answer = json.loads(await response.text())
            if answered is not None:
                answered.update({name.lower(): value for name, value in response.headers.items()})
    except TimeoutError:
        raise PlatformUnreachable(platform, api_base, f"no answer within {PATIENCE_S:g} s") from None
    except (aiohttp.ClientError, ValueError) as error:
        # Its own words may hold the address that was called, and in it the token.
        raise PlatformUnreachable(platform, api_base, type(error).__name__) from None
    if not isinstance(answer, dict):
        raise PlatformUnreachable(platform, api_base, "its answer is not the platform's")
    return answer


def _below(answer: dict[str, Any], key: str) -> dict[str, Any]:
    value = answer.get(key)
    return value if isinstance(value, dict) else {}


def _words(value: object) -> str:
    """What a platform says, as one short printable line."""
    return "".join(character for character in str(value) if character.isprintable())[:200]
