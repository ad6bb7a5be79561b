"""``/approve`` and ``/deny``: the answer to an agent's question whether a tool may run."""

import re
from dataclasses import dataclass

from gateway.commands.base import BadUsage, Command, CommandContext, Declined, Invocation, Order, Outcome, Usage
from gateway.render import name, one_line, say
from gateway.state.access import Role
from gateway.state.approvals import Approval, ApprovalState

_NUMBER = re.compile(r"#?(\d{1,18})")
_QUOTED_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a question; without a ``number`` the newest that waited in this chat when the answer came."""

    state: ApprovalState
    number: int | None = None

    order = Order.IMMEDIATE

    async def run(self, context: CommandContext) -> Outcome:
        """Store the answer, then let the turn go on."""
        if context.settings.approvers == "admins" and context.role is not Role.ADMIN:
            raise Declined("Only an admin may answer what an agent asks here. Nothing was answered.")
        asked = await self._meant(context)
        settled = await context.memory.approvals.settle(
            asked.id, self.state, by=context.inbound.user, inbox_id=context.inbox_id
        )
        if settled.state is not self.state or settled.answer_inbox_id != context.inbox_id:
            raise Declined(_over(settled))
        context.control.wake(asked.id)
        said = "✅ Approved, it runs now" if self.state is ApprovalState.APPROVED else "🚫 Denied, it is not run"
        return Outcome((say(f"{said}: question #{asked.id}, {_quoted(asked)}"),))

    async def _meant(self, context: CommandContext) -> Approval:
        if self.number is None:
            pending = await context.memory.approvals.pending(context.place, seen_by=context.inbox_id)
            if not pending:
                raise Declined("No question waits for an answer here.")
            return pending[0]
        asked = await context.memory.approvals.find(self.number)
        if asked is None or asked.place != context.place:
            raise Declined(f"There is no question #{self.number} in this chat. /status shows what waits for an answer.")
        if asked.state is not ApprovalState.PENDING:
            raise Declined(_over(asked))
        return asked


def _over(asked: Approval) -> str:
    """Say what came of a question that cannot be answered any more."""
    match asked.state:
        case ApprovalState.APPROVED | ApprovalState.DENIED:
            what = f"was {asked.state.value} by {name(asked.answered_by or '')} already"
        case ApprovalState.EXPIRED:
            what = "got no answer in time, so nothing was run"
        case _:
            what = "is closed: its turn has ended, and nothing was run"
    return f"Question #{asked.id} {what}: {_quoted(asked)}"


def _quoted(asked: Approval) -> str:
    return one_line(asked.subject, _QUOTED_CHARACTERS)


def _number(command: str, text: str) -> int | None:
    word = text.strip()
    if not word:
        return None
    match = _NUMBER.fullmatch(word)
    if match is None:
        raise BadUsage(f"/{command} takes the number of a question, as in /{command} 3, or nothing: the newest.")
    return int(match[1])


def _parse_approve(text: str) -> Invocation:
    return Answer(ApprovalState.APPROVED, _number("approve", text))


def _parse_deny(text: str) -> Invocation:
    return Answer(ApprovalState.DENIED, _number("deny", text))


APPROVE = Command(
    name="approve",
    summary="Let the agent run what it asks about",
    usages=(Usage("/approve [N]", "let the agent run what it asks about; without N the newest question"),),
    parse=_parse_approve,
)

DENY = Command(
    name="deny",
    summary="Keep the agent from running what it asks about",
    usages=(Usage("/deny [N]", "do not let it; it is told so and goes on without"),),
    parse=_parse_deny,
)
