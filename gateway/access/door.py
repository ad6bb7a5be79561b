"""What becomes of a message or a press before anything of it is stored or fetched: the gateway's one door.

In this order: 1. a chat that has another id now is followed to it; 2. what is not meant for the gateway is dropped; 3.
who is not admitted is refused; 4. a pressed button becomes the command that it stands for, or is refused; 5. the files
of a message are fetched. What is refused leaves no trace but ids in the log.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from adapters.contract import Inbound, Outbound, Part, Place, Reception
from gateway.access import refusals
from gateway.access.admission import Access
from gateway.access.allowance import Allowance
from gateway.access.fetching import fetch, safe_names
from gateway.operation.measures import Note, Refused, unnoted
from gateway.state.access import Admissions, Role
from gateway.state.buttons import Bound, Buttons
from gateway.state.moves import Moves

REFUSED_EVERY_S = 60.0
"""How often one person, or one group's strangers together, are told that they are not admitted."""

IDS_EVERY_S = 10.0
"""How often a stranger is shown their ids."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """A message that is let in, as it is to be stored: ``remarks`` on it are sent, the button ``spends`` is used up."""

    inbound: Inbound
    remarks: tuple[Outbound, ...] = ()
    spends: str | None = None


class Door:
    """Lets in what admitted people send."""

    def __init__(
        self,
        access: Access,
        admissions: Admissions,
        buttons: Buttons,
        moves: Moves,
        *,
        clock: Callable[[], float] = time.monotonic,
        note: Note = unnoted,
    ) -> None:
        self._note = note
        self._access = access
        self._admissions = admissions
        self._buttons = buttons
        self._moves = moves
        self._refusals = Allowance(REFUSED_EVERY_S, clock=clock)
        self._ids = Allowance(IDS_EVERY_S, clock=clock)

    async def enter(self, inbound: Inbound) -> Entry | Reception:
        """Decide about something that has arrived; what a `Reception` says is all that comes of it.

        Raises:
            StateError: it cannot be decided now, and must not be acknowledged.
        """
        rules = self._access.rules(inbound.place.adapter)
        if inbound.continues is not None:
            await self._note_move(inbound.continues, inbound.place)
            return Reception()
        inbound = await self._followed(inbound)
        if not (inbound.addressed or rules.answers_everything):
            return Reception()
        role = await self._access.role(inbound)
        if role is None:
            return Reception(await self._refuse(inbound))
        if inbound.pressed is not None:
            return await self._press(inbound, inbound.pressed, role)
        if inbound.edited:
            # It is not handled again, so nothing is fetched for it.
            return Entry(replace(inbound, files=(), offered=()))
        fetched = await fetch(inbound.offered, largest_bytes=rules.largest_file_bytes, limit_s=rules.fetch_limit_s)
        files = safe_names((*inbound.files, *fetched.in_order))
        remark = Outbound(inbound.place, (Part(fetched.said),), reply_to=inbound.event_id)
        return Entry(replace(inbound, files=files, offered=()), (remark,) if fetched.missing else ())

    async def role(self, inbound: Inbound) -> Role | None:
        """What the sender of a stored message is admitted as when it is handled, ``None`` when not any more.

        Raises:
            StateError: see `Access.role`.
        """
        role = await self._access.role(inbound)
        if role is None:
            _log.info("refused at last", extra=_about(inbound))
        return role

    async def _note_move(self, before: Place, now: Place) -> None:
        """Let a chat go on at its new place, on the platform's word; of strangers' chats nothing is kept."""
        before = await self._moves.follow(before)
        if before.chat in self._access.rules(before.adapter).circles or await self._moves.knows(before):
            await self._moves.note(before, now)
            _log.info("a chat has moved", extra={"adapter": now.adapter, "chat": now.chat, "before": before.chat})

    async def _followed(self, inbound: Inbound) -> Inbound:
        """What comes from where a chat was is from where it is; a group is still the one that was admitted."""
        place = await self._moves.follow(inbound.place)
        circles: list[str] = []
        for circle in inbound.circles:
            now = await self._moves.follow(Place(place.adapter, circle))
            circles += [now.chat, *await self._moves.former(now)]
        return replace(inbound, place=place, circles=tuple(circles))

    async def _refuse(self, inbound: Inbound) -> str | None:
        """Say how to be admitted, not too often; ``None`` for silence."""
        if not inbound.addressed:
            return None
        self._note(Refused(inbound.place.adapter))
        place = inbound.place
        person = (place.adapter, inbound.user)
        if refusals.asks_for_ids(inbound.text):
            return refusals.ids_of(inbound) if self._ids.allows(person) else None
        together = person if inbound.private else (place.adapter, "", place.chat)
        if not self._refusals.allows(person) or (together != person and not self._refusals.allows(together)):
            return None
        _log.info("refused", extra=_about(inbound))
        if not inbound.private:
            return refusals.without_code(inbound)
        code = await self._admissions.issue(place, inbound.user)
        return refusals.crowded(inbound) if code is None else refusals.with_code(inbound, code)

    async def _press(self, inbound: Inbound, token: str, role: Role) -> Entry | Reception:
        bound = await self._buttons.find(token)
        if bound is None:
            return Reception(refusals.UNKNOWN_BUTTON, spent=True)
        refused = self._refused_press(inbound, bound, role)
        if refused is not None:
            return refused
        pressed = replace(inbound, text=bound.command, files=(), offered=(), edited=False)
        return Entry(pressed, spends=bound.token if bound.once else None)

    def _refused_press(self, inbound: Inbound, bound: Bound, role: Role) -> Reception | None:
        if bound.place != inbound.place:
            _log.info("a button of another chat was pressed", extra=_about(inbound))
            return Reception(refusals.ELSEWHERES_BUTTON)
        # Whoever spoke as their group has nobody's name, and presses under their own.
        if bound.person not in {None, inbound.user, *inbound.circles} and role is not Role.ADMIN:
            return Reception(refusals.ANOTHERS_BUTTON)
        if bound.spent_by == inbound.event_id:
            # Delivered once more: it was taken in with the spending.
            return Reception(spent=True)
        if bound.spent_by is not None:
            return Reception(refusals.USED_BUTTON, spent=True)
        if self._buttons.expired(bound):
            return Reception(refusals.too_old(bound.command), spent=True)
        return None


def _about(inbound: Inbound) -> dict[str, object]:
    return {"adapter": inbound.place.adapter, "chat": inbound.place.chat, "user": inbound.user}
