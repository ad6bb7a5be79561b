"""What comes with a message: kept in the workspace where no checkpoint takes it in, for this turn and later ones."""

import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass

from adapters.contract import Attachment
from engine.errors import EngineError
from engine.model import ToolCall
from gateway.offload import Offload
from gateway.state.memory import Memory
from gateway.state.sent import SentFile
from gateway.state.turns import Turn

TEXT = "text/plain"
UNKNOWN = "application/octet-stream"

# What images begin with (the specifications of PNG, JPEG, GIF and WebP); names are often wrong.
_IMAGES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_WEBP = (b"RIFF", b"WEBP")

# Made here, because it reads files of the system when it is first made.
_NAMES = mimetypes.MimeTypes()


@dataclass(frozen=True, slots=True)
class Kept:
    """What was kept, in order, and a sentence for each file that was not."""

    files: tuple[SentFile, ...] = ()
    problems: tuple[str, ...] = ()


class Enclosures:
    """Keeps and reads what came with messages."""

    def __init__(self, memory: Memory, offload: Offload) -> None:
        self._sent = memory.sent
        self._offload = offload

    async def keep(
        self, turn: Turn, call: ToolCall, files: Sequence[Attachment], earlier: Sequence[SentFile] = ()
    ) -> Kept:
        """Keep what came with a turn's message; ``earlier`` came with it when it was first said."""
        if not (files or earlier):
            return Kept()
        places = [self._offload.sent_path(f"{turn.id}-{file.name}") for file in files]
        new = [
            SentFile(place, media_type(file.name, file.content), len(file.content))
            for place, file in zip(places, files, strict=True)
        ]
        await self._sent.add(turn.id, [*earlier, *new])
        kept = list(earlier)
        problems = []
        for sent, file in zip(new, files, strict=True):
            try:
                await self._offload.keep_sent(call, sent.path, file.content)
            except EngineError as error:
                await self._sent.forget(turn.id, sent.path)
                problems.append(str(error))
            else:
                kept.append(sent)
        return Kept(tuple(kept), tuple(problems))

    async def read(self, call: ToolCall, file: SentFile) -> bytes | None:
        """Read a file that was kept; ``None`` where it is not kept any more."""
        return await self._offload.read_sent(call, file.path)

    async def expire(self) -> int:
        """Remove what has been kept long enough; returns how many files."""
        count = 0
        for root, paths in (await self._sent.old()).items():
            await self._offload.remove_sent(root, paths)
            await self._sent.removed(root, paths)
            count += len(paths)
        return count


def media_type(name: str, content: bytes) -> str:
    """Say what a file is: an image by its content, a text if it is one, anything else by its name."""
    for beginning, image in _IMAGES:
        if content.startswith(beginning):
            return image
    if (content[:4], content[8:12]) == _WEBP:
        return "image/webp"
    named = _NAMES.guess_type(name, strict=False)[0] or ""
    if _is_text(content):
        return named if named.startswith("text/") or named.endswith(("json", "xml")) else TEXT
    return UNKNOWN if named.startswith(("text/", "image/")) else named or UNKNOWN


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False
