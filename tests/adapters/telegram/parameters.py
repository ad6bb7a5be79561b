"""What each method of the Bot API takes, from core.telegram.org/bots/api; ``!`` marks what it cannot do without.

Telegram passes over a parameter that it does not know. Here it is refused: it can only be a mistake.
"""

import json
from typing import Any

MESSAGE = {
    "chat_id": "id!",
    "message_thread_id": "int",
    "disable_notification": "bool",
    "protect_content": "bool",
    "reply_parameters": "json",
    "reply_markup": "json",
    "parse_mode": "str",
    "link_preview_options": "json",
    "allow_sending_without_reply": "bool",
    "reply_to_message_id": "int",
    "ephemeral_message_parameters": "json",
}
METHODS: dict[str, dict[str, str]] = {
    "getMe": {},
    "getUpdates": {"offset": "int", "limit": "int", "timeout": "int", "allowed_updates": "json"},
    "setWebhook": {
        "url": "str!",
        "max_connections": "int",
        "allowed_updates": "json",
        "drop_pending_updates": "bool",
        "secret_token": "str",
        "ip_address": "str",
    },
    "deleteWebhook": {"drop_pending_updates": "bool"},
    "getWebhookInfo": {},
    "sendMessage": {**MESSAGE, "text": "str!", "entities": "json"},
    "sendDocument": {
        **MESSAGE,
        "document": "file!",
        "caption": "str",
        "caption_entities": "json",
        "disable_content_type_detection": "bool",
    },
    "sendMessageDraft": {
        "chat_id": "int!",
        "draft_id": "int!",
        "message_thread_id": "int",
        "text": "str",
        "parse_mode": "str",
        "entities": "json",
        "can_stop": "bool",
        "keep_on_stop": "bool",
    },
    "sendChatAction": {"chat_id": "id!", "action": "str!", "message_thread_id": "int"},
    "editMessageText": {
        "chat_id": "id!",
        "message_id": "int!",
        "text": "str!",
        "entities": "json",
        "parse_mode": "str",
        "link_preview_options": "json",
        "reply_markup": "json",
    },
    "editMessageReplyMarkup": {"chat_id": "id!", "message_id": "int!", "reply_markup": "json"},
    "deleteMessage": {"chat_id": "id!", "message_id": "int!"},
    "answerCallbackQuery": {
        "callback_query_id": "str!",
        "text": "str",
        "show_alert": "bool",
        "url": "str",
        "cache_time": "int",
    },
    "getFile": {"file_id": "str!"},
    "setMyCommands": {"commands": "json!", "scope": "json", "language_code": "str"},
    "getMyCommands": {"scope": "json", "language_code": "str"},
    "setMyDescription": {"description": "str", "language_code": "str"},
    "getMyDescription": {"language_code": "str"},
    "setMyShortDescription": {"short_description": "str", "language_code": "str"},
}
NAMES = {name.lower(): name for name in METHODS}


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        self.status = status
        self.description = description
        self.parameters = parameters
        super().__init__(description)


def bad(description: str) -> Refusal:
    return Refusal(400, f"Bad Request: {description}")


def read(method: str, given: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a call as values; each is refused that the method does not take, or not so."""
    known = METHODS[method]
    values: dict[str, Any] = {}
    files = {name for name, value in given.items() if isinstance(value, tuple) and name not in known}
    for name, value in given.items():
        if name in known:
            values[name] = _value(name, known[name].rstrip("!"), value, given)
        elif name not in files:
            raise bad(f"{method} has no parameter {name}")
    missing = [name for name, kind in known.items() if kind.endswith("!") and values.get(name) in (None, "")]
    if missing:
        raise bad("message text is empty" if missing == ["text"] else f"parameter {missing[0]} is required")
    unused = files - {str(value).removeprefix("attach://") for value in given.values()}
    if unused:
        raise bad(f"nothing refers to the file {unused.pop()}")
    return values


def _value(name: str, kind: str, value: Any, given: dict[str, Any]) -> Any:
    try:
        match kind:
            case "file":
                return value if isinstance(value, tuple) else given[str(value).removeprefix("attach://")]
            case "int" | "id":
                return int(value)
            case "bool":
                return {"true": True, "1": True, "false": False, "0": False}[str(value).lower()]
            case "json":
                return json.loads(value) if isinstance(value, str) else value
    except (KeyError, ValueError):
        raise bad(f"parameter {name} has a wrong value") from None
    if not isinstance(value, str):
        raise bad(f"parameter {name} must be a text")
    return value
