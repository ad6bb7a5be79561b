"""The console for pipes: one message a line, each dealt with to its end before the next is read.

A line has no newline in it, so what needs one (``/write``, ``/patch``) needs the terminal or JSON lines.
"""

from anyio import to_thread

from adapters.console.attachments import AttachmentDirectory
from adapters.console.pending import NAME, Pending, Speaker
from adapters.console.streams import LineReader, LineTooLong, OutputGone, Writer
from adapters.console.text import choices, encodable, plain, printable
from adapters.contract import Attachment, Inbound, Outbound, Place, Receive, SendFailed


class Lines:
    """Plain text in, plain text out."""

    name = NAME
    has_buttons = False
    connected = True

    def __init__(self, reader: LineReader, writer: Writer, attachments: AttachmentDirectory, speaker: Speaker) -> None:
        self._reader = reader
        self._writer = writer
        self._attachments = attachments
        self._speaker = speaker
        self._pending = Pending()

    async def run(self, receive: Receive) -> None:
        """Take in one line after another until the input ends or nobody reads the output."""
        while not self._writer.gone.is_set():
            try:
                line = await self._reader.next()
            except LineTooLong:
                await self._say("That line is too long and was skipped.")
                continue
            if line is None:
                return
            text = line.decode("utf-8", "surrogateescape").rstrip("\r")
            if text.strip():
                await self._hand_over(text, receive)

    async def _hand_over(self, text: str, receive: Receive) -> None:
        """Give a message in and wait until it is dealt with, which it is at once when it is not taken."""
        event_id = self._pending.begin()
        inbound = Inbound(self._speaker.place(), self._speaker.user, event_id, text, private=True)
        notice = (await receive(inbound)).notice
        if notice is not None:
            await self._say(printable(notice))
            self._pending.end(event_id)
        await self._pending.wait(event_id)

    async def send(self, message: Outbound) -> None:
        """Write one reply; files are saved and named."""
        text = [printable(plain(message)), choices(message.buttons)]
        text += [await self._saved(attachment) for attachment in message.files]
        if not await self._say("\n".join(line for line in text if line)):
            raise SendFailed("nobody reads the output any more", retry_after_s=None)

    async def _saved(self, attachment: Attachment) -> str:
        try:
            path = await to_thread.run_sync(self._attachments.save, attachment)
        except OSError as error:
            return f"  {printable(attachment.name)} could not be saved: {error.strerror}"
        return f"  {printable(attachment.name)} is saved as {path}"

    async def _say(self, text: str) -> bool:
        try:
            await self._writer.write(encodable(text).encode() + b"\n")
        except OutputGone:
            return False
        return True

    async def progress(self, place: Place, text: str) -> None:
        """Nothing: whoever reads a pipe waits for replies."""

    async def finished(self, place: Place, event_id: str) -> None:  # noqa: ARG002 - one chat only
        """Go on to the next line."""
        self._pending.end(event_id)
