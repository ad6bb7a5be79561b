"""What the gateway says, as platform-neutral parts: never markup by hand, every name of a file shown as valid text.

A `Reply` is an `Outbound` that does not know its place yet. The adapters render it.
"""

from dataclasses import dataclass

from adapters.contract import Attachment, Button, Outbound, Part, Place


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: marked-up text, files, and a few buttons."""

    parts: tuple[Part, ...]
    files: tuple[Attachment, ...] = ()
    buttons: tuple[Button, ...] = ()

    @property
    def plain_text(self) -> str:
        """The words without markup."""
        return "".join(part.text for part in self.parts)

    def to(self, place: Place, reply_to: str | None = None) -> Outbound:
        """Address the answer."""
        return Outbound(place, self.parts, self.files, self.buttons, reply_to)


def say(text: str, *, buttons: tuple[Button, ...] = ()) -> Reply:
    """Answer with plain words."""
    return Reply((Part(text),), buttons=buttons)
