"""Names of chats and events: what of Slack's ids the gateway keeps, and how they are read again.

A chat is ``TEAM/CHANNEL`` or, for a thread, ``TEAM/CHANNEL/THREAD``; a direct message is one chat, whatever threads it
has. An event is ``CHANNEL:KEY`` or ``CHANNEL:KEY:THREAD``: a message's key is its timestamp, which is the same in every
event that tells of it, and the thread is where an answer belongs.
"""

from dataclasses import dataclass

from adapters.contract import Place

NAME = "slack"
HOME = "home"
"""Stands for the channel of the page that the app has for each person, which stands for the thread."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the Web API sends something."""

    team: str
    channel: str
    thread: str | None = None

    @property
    def is_private(self) -> bool:
        """Whether nobody but one person and the app can read it."""
        return self.channel.startswith("D") or self.is_home

    @property
    def is_home(self) -> bool:
        """Whether it is a page that the app shows one person."""
        return self.channel == HOME

    @property
    def place(self) -> Place:
        """The chat that it belongs to, in the contract's words."""
        threaded = self.thread is not None and (self.is_home or not self.is_private)
        return Place(NAME, "/".join([self.team, self.channel, *([self.thread or ""] if threaded else [])]))

    @classmethod
    def of(cls, place: Place, answers: str | None = None) -> "Address":
        """Read a place that was made by `place`; ``answers`` is the event to which something is said there."""
        team, channel, *thread = place.chat.split("/")
        asked, _, where = (answers or "").partition(":")
        if not thread and asked == channel:
            thread = where.split(":")[1:]
        return cls(team, channel, thread[0] if thread else None)

    def event(self, key: str) -> str:
        """Name an event that happened here."""
        return ":".join([self.channel, key, *([self.thread] if self.thread is not None else [])])
