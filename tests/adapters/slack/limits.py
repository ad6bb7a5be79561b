"""What Slack refuses in a message: its length, its blocks, its buttons."""

from typing import Any

LONGEST_TEXT = 40_000
LONGEST_UPDATE = 4_000
MOST_BLOCKS = 50
MOST_SHOWN = 13_000
INLINE = {"text", "link", "user", "emoji"}


class Refusal(Exception):
    """How a call is refused: the error's name, and when to call again."""

    def __init__(self, error: str, detail: str = "", *, retry_after: int | None = None, **more: Any) -> None:
        self.error = error
        self.detail = detail
        self.retry_after = retry_after
        self.more = more
        super().__init__(f"{error}: {detail}")


def check_message(text: Any, blocks: Any, *, update: bool = False) -> None:
    """A message has words for notifications, and blocks within the limits."""
    if not isinstance(text, str) or not text.strip():
        raise Refusal("no_text", "a notification would be empty")
    if len(text) > LONGEST_TEXT or (update and len(text.encode()) >= LONGEST_UPDATE):
        raise Refusal("msg_too_long")
    if any(mark in text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "") for mark in "&<>"):
        raise Refusal("invalid_arguments", f"not escaped: {text[:200]}")
    if blocks is None:
        return
    if not isinstance(blocks, list) or not 1 <= len(blocks) <= MOST_BLOCKS:
        raise Refusal("invalid_blocks", "number of blocks")
    shown = "".join(shown_in(block) for block in blocks)
    if len(shown) > MOST_SHOWN or (update and len(shown.encode()) >= LONGEST_UPDATE):
        raise Refusal("msg_blocks_too_long")
    for block in blocks:
        _check_block(block)
    actions = [element["action_id"] for block in blocks if block["type"] == "actions" for element in block["elements"]]
    if len(set(actions)) != len(actions):
        raise Refusal("invalid_blocks", "an action_id stands twice")


def shown_in(block: dict[str, Any]) -> str:
    """The words of a block, blocks within on lines of their own."""
    match block.get("type"):
        case "rich_text":
            parts = []
            for element in block["elements"]:
                words = "".join(inner.get("text", "") for inner in element["elements"])
                parts.append(f"\n{words}\n" if element["type"] == "rich_text_preformatted" else words)
            return "".join(parts).strip("\n")
        case "section" | "header":
            return str(block["text"]["text"])
        case _:
            return ""


def _check_block(block: dict[str, Any]) -> None:
    match block.get("type"):
        case "rich_text":
            _check_rich_text(block)
        case "actions":
            _only(block, {"type", "elements", "block_id"})
            if not 1 <= len(block["elements"]) <= 25:
                raise Refusal("invalid_blocks", "number of elements")
            for element in block["elements"]:
                _check_button(element)
        case "section":
            _text(block["text"], {"mrkdwn", "plain_text"}, 3000)
        case "header":
            _text(block["text"], {"plain_text"}, 150)
        case _:
            raise Refusal("invalid_blocks", f"unsupported type {block.get('type')}")


def _check_rich_text(block: dict[str, Any]) -> None:
    _only(block, {"type", "elements", "block_id"})
    if not block["elements"]:
        raise Refusal("invalid_blocks", "no elements")
    for element in block["elements"]:
        _only(element, {"type", "elements", "border"})
        if element["type"] not in {"rich_text_section", "rich_text_preformatted"} or not element["elements"]:
            raise Refusal("invalid_blocks", f"element {element}")
        if sum(len(inner.get("text", "")) for inner in element["elements"]) > 3000:
            raise Refusal("invalid_blocks", "an element is longer than 3000 characters")
        for inner in element["elements"]:
            _only(inner, {"type", "text", "style"})
            if inner["type"] not in INLINE or not isinstance(inner["text"], str) or not inner["text"]:
                raise Refusal("invalid_blocks", f"inline element {inner}")
            if not set(inner.get("style", {"bold": True})) <= {"bold", "italic", "strike", "code"}:
                raise Refusal("invalid_blocks", f"style {inner}")
            if element["type"] == "rich_text_preformatted" and "style" in inner:
                raise Refusal("invalid_blocks", "a style in preformatted text")


def _check_button(button: dict[str, Any]) -> None:
    _only(button, {"type", "text", "action_id", "value", "style", "confirm"})
    if button["type"] != "button":
        raise Refusal("invalid_blocks", f"element {button['type']}")
    _text(button["text"], {"plain_text"}, 75)
    if not 1 <= len(button["action_id"]) <= 255 or len(button.get("value", "")) > 2000:
        raise Refusal("invalid_blocks", "action_id or value")
    if "confirm" in button:
        confirm = button["confirm"]
        _only(confirm, {"title", "text", "confirm", "deny", "style"})
        for part, longest in (("title", 100), ("text", 300), ("confirm", 30), ("deny", 30)):
            _text(confirm[part], {"plain_text", "mrkdwn"}, longest)


def _text(text: dict[str, Any], kinds: set[str], longest: int) -> None:
    _only(text, {"type", "text", "emoji", "verbatim"})
    if text["type"] not in kinds or not 1 <= len(text["text"]) <= longest:
        raise Refusal("invalid_blocks", f"text {text['text'][:40]!r} of {len(text['text'])} characters")


def _only(given: dict[str, Any], known: set[str]) -> None:
    if not set(given) <= known:
        raise Refusal("invalid_blocks", f"unknown: {set(given) - known}")
