"""What the Bot API refuses in a message: its length, its entities, its buttons, its file."""

import re
from typing import Any

from tests.adapters.telegram.parameters import Refusal, bad

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
PLAIN_KINDS = {"bold", "italic", "underline", "strikethrough", "spoiler"}
QUOTES = {"blockquote", "expandable_blockquote"}
KINDS = PLAIN_KINDS | QUOTES | {"code", "pre", "text_link", "mention", "hashtag", "url", "bot_command", "date_time"}


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def check_text(text: str, longest: int, what: str) -> None:
    if units(text) > longest:
        raise bad(f"{what} is too long")


def check_entities(text: str, entities: Any) -> None:
    """Each lies within the text, cuts no character, and crosses none; code holds nothing and is held by nothing."""
    if not isinstance(entities, list):
        raise bad("can't parse entities: expected an array")
    spans = []
    data = text.encode("utf-16-le", "surrogatepass")
    for entity in entities:
        kind, start, length = entity.get("type"), entity.get("offset"), entity.get("length")
        if kind not in KINDS or not isinstance(start, int) or not isinstance(length, int):
            raise bad(f"can't parse entities: unsupported entity {entity}")
        end = start + length
        if start < 0 or length <= 0 or end > len(data) // 2:
            raise bad(f"can't parse entities: {kind} at {start}+{length} lies outside of the text")
        if any(0xDC <= data[2 * edge + 1] <= 0xDF for edge in (start, end) if edge < len(data) // 2):
            raise bad(f"can't parse entities: {kind} at {start}+{length} cuts a character")
        spans.append((start, end, kind))
    if len(spans) > 100:
        raise bad("can't parse entities: there are too many")
    for number, (start, end, kind) in enumerate(spans):
        for other_start, other_end, other in spans[number + 1 :]:
            apart = end <= other_start or other_end <= start
            if not apart and not _nest((start, end), (other_start, other_end), {kind, other}):
                raise bad(f"can't parse entities: {kind} and {other} can't be nested")


def _nest(one: tuple[int, int], other: tuple[int, int], kinds: set[str]) -> bool:
    inside = (one[0] <= other[0] and other[1] <= one[1]) or (other[0] <= one[0] and one[1] <= other[1])
    return inside and not kinds & {"code", "pre"} and bool(kinds & PLAIN_KINDS)


def check_buttons(markup: Any) -> None:
    if not isinstance(markup, dict) or not isinstance(markup.get("inline_keyboard"), list):
        raise bad("object expected as reply markup")
    buttons = [button for row in markup["inline_keyboard"] for button in row]
    if len(buttons) > 100:
        raise bad("REPLY_MARKUP_TOO_LONG")
    for button in buttons:
        if not button.get("text"):
            raise bad("can't parse inline keyboard button: text must be non-empty")
        if not 1 <= len(str(button.get("callback_data", "")).encode()) <= 64:
            raise bad("BUTTON_DATA_INVALID")


def check_file(content: bytes, largest: int) -> None:
    if not content:
        raise bad("file must be non-empty")
    if len(content) > largest:
        raise Refusal(413, "Request Entity Too Large")


def check_commands(commands: Any) -> None:
    if not isinstance(commands, list) or len(commands) > 100:
        raise bad("BOT_COMMANDS_TOO_MUCH")
    for command in commands:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", command["command"]):
            raise bad("BOT_COMMAND_INVALID")
        if not 1 <= len(command["description"]) <= 256:
            raise bad("BOT_COMMAND_DESCRIPTION_INVALID")


def found_entities(text: str) -> list[dict[str, Any]]:
    """What Telegram finds by itself in what a person types."""
    kinds = {"bot_command": r"(?<![\w/])/\w{1,64}(?:@\w+)?", "mention": r"(?<!\w)(?<!/)@\w+"}
    found = [
        {"type": kind, "offset": units(text[: match.start()]), "length": units(match.group())}
        for kind, pattern in kinds.items()
        for match in re.finditer(pattern, text)
        if kind == "bot_command" or not re.search(r"/\w+$", text[: match.start()])
    ]
    return sorted(found, key=lambda entity: entity["offset"])
