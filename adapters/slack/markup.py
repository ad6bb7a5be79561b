"""Slack's own way of writing: what people typed is read from it, and what is said is written in it.

In it ``&``, ``<`` and ``>`` are escaped, and links, people and channels stand in angle brackets:
docs.slack.dev/messaging/formatting-message-text
"""

import re

_THING = re.compile(r"<(?P<to>(?:[@#!]|https?://|mailto:|tel:)[^<>|]*)(?:\|(?P<label>[^<>]*))?>")
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_CHARACTERS = {"amp": "&", "lt": "<", "gt": ">"}


def read(text: str) -> str:
    """What a person typed, as far as Slack lets it be known."""
    return _unescaped(_THING.sub(_typed, text))


def without_names(text: str, user: str) -> tuple[str, bool, bool]:
    """A text as it came without the names of a user; whether there were any, and whether it began with one."""
    name = rf"<@{re.escape(user)}(?:\|[^<>]*)?>"
    bare = re.sub(rf"\A\s*{name}[,:]?\s*| ?{name}", "", text)
    return (bare.strip(), True, re.match(rf"\s*{name}", text) is not None) if bare != text else (text, False, False)


def escape(text: str) -> str:
    """A text that means nothing but itself."""
    return re.sub("[&<>]", lambda match: _ESCAPED[match.group()], text)


def _typed(match: re.Match[str]) -> str:
    to, label = match["to"], match["label"]
    if to.startswith("!"):
        # A group, a date, or everybody here.
        return label or f"@{to[1:].partition('^')[0]}"
    if to.startswith("@"):
        return f"@{label or to[1:]}"
    if to.startswith("#"):
        return f"#{label or to[1:]}"
    address = to.partition(":")[2].removeprefix("//")
    if label is None:
        return to
    # Slack makes links of addresses and of file names that look like some: then the label is what was typed.
    return label if label.rstrip("/") in {to.rstrip("/"), address.rstrip("/")} else f"{label} ({to})"


def _unescaped(text: str) -> str:
    return re.sub("&(amp|lt|gt);", lambda match: _CHARACTERS[match[1]], text)
