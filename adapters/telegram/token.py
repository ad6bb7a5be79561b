"""The form of a bot's token, for whoever wants to know it before the client is there, which takes its time."""

import re

_TOKEN = re.compile(r"[0-9]+:[^\s:]+")


class TokenMalformed(ValueError):
    """A text that cannot be a bot's token."""

    def __init__(self) -> None:
        super().__init__("is no bot token; @BotFather gives one that looks like 123456789:AAH…")


def check_token(token: str) -> None:
    """Accept what looks like a token.

    Raises:
        TokenMalformed: it does not.
    """
    if not _TOKEN.fullmatch(token):
        raise TokenMalformed
