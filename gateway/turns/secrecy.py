"""A reply as it may be kept and sent: without what is a secret, in its words and in the text files that go with it."""

from collections.abc import Collection
from dataclasses import replace

from adapters.contract import Attachment
from gateway.blotting import blotted
from gateway.render import Reply


def without_secrets(reply: Reply, secrets: Collection[str]) -> Reply:
    """The same reply without any of ``secrets`` and without what looks like a key."""
    parts = tuple(replace(part, text=blotted(part.text, secrets)) for part in reply.parts)
    return Reply(parts, tuple(_without(file, secrets) for file in reply.files), reply.buttons)


def _without(file: Attachment, secrets: Collection[str]) -> Attachment:
    try:
        text = file.content.decode("utf-8")
    except UnicodeDecodeError:
        return file
    return replace(file, content=blotted(text, secrets).encode("utf-8"))
