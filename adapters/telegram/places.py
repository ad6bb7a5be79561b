"""Names of chats and events: what of Telegram's ids the gateway keeps, and how they are read again.

A chat is ``CHAT`` or, for a topic, ``CHAT/TOPIC``; a group's id is negative. An event is ``BOT:UPDATE:MESSAGE``: an
update keeps its id when it is delivered again, another bot's updates may have the same ids, and a reply needs the
message. A button is ``TOKEN`` or ``TOKEN/TOPIC``: of a message that is some days old Telegram tells the chat alone.
"""

from dataclasses import dataclass
from typing import Any

from adapters.contract import Place

NAME = "telegram"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the Bot API sends something. The general topic of a group has no ``topic``: it takes none."""

    chat: int
    topic: int | None = None

    @property
    def is_private(self) -> bool:
        """Whether it is a chat of one person with the bot."""
        return self.chat > 0

    @property
    def target(self) -> dict[str, Any]:
        """The parameters of a call that sends something there."""
        return {"chat_id": self.chat, "message_thread_id": self.topic}

    @property
    def place(self) -> Place:
        """The same in the contract's words."""
        return Place(NAME, str(self.chat) if self.topic is None else f"{self.chat}/{self.topic}")

    @classmethod
    def of(cls, place: Place) -> "Address":
        """Read a place that was made by `place`."""
        chat, _, topic = place.chat.partition("/")
        return cls(int(chat), int(topic) if topic else None)


def event_id(bot: int, update: int, message: int | None) -> str:
    """Name an event."""
    return f"{bot}:{update}:{message or ''}"


def button_data(token: str, topic: int | None) -> str:
    """What Telegram keeps of a button, at most 64 bytes."""
    return token if topic is None else f"{token}/{topic}"


def read_button(data: str) -> tuple[str, int | None]:
    """Read what `button_data` made: the token, and the topic that the button stands in."""
    token, _, topic = data.partition("/")
    return token, int(topic) if topic.isdecimal() else None


def message_of(event: str | None) -> int | None:
    """The message of an event, if it has one."""
    number = (event or "").rpartition(":")[2]
    return int(number) if number.isdecimal() else None
