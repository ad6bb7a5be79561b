"""``/pair``: an admin admits somebody who was given a code."""

from dataclasses import dataclass

from gateway.commands.arguments import parse_arguments
from gateway.commands.base import BadUsage, Command, CommandContext, Declined, Invocation, Order, Outcome, Usage
from gateway.render import Reply, name, say
from gateway.state.access import CODE_CHARACTERS, CODE_LIFETIME, Admission, Role, normal

_MINUTES = int(CODE_LIFETIME.total_seconds() // 60)

NO_SUCH_CODE = (
    f"No such code is open: codes are good for {_MINUTES} minutes and once. "
    "Whoever wants to be admitted writes to me again and gets a new one."
)
"""What to say of a wrong code, or one that is used or too old: which of these it is, is nobody's business."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Admit the person whom a code was given to."""

    code: str
    role: Role

    order = Order.IMMEDIATE

    async def run(self, context: CommandContext) -> Outcome:
        """Admit, and answer with who it was in one transaction; they are told by themselves."""
        inbound = context.inbound
        admission = await context.memory.admissions.redeem(
            self.code,
            self.role,
            by=f"{inbound.place.adapter}:{inbound.user}",
            answer=lambda admission: _admitted(admission).to(inbound.place, inbound.event_id),
            inbox_id=context.inbox_id,
            owner=context.memory.instance.id,
        )
        if admission is None:
            raise Declined(NO_SUCH_CODE)
        return Outcome(())


def _admitted(admission: Admission) -> Reply:
    who = f"{name(admission.adapter)}:{name(admission.user)}"
    undo = f"Undo it on the gateway's machine: gateway pair --remove {who}"
    return say(f"✅ Admitted {who} as {admission.role.value}. {undo}")


def parse(text: str) -> Invocation:
    """Accept a code, and a role after it."""
    words = parse_arguments("pair", text).words
    code = normal("".join(words[:1]))
    if len(words) not in {1, 2} or len(code) != CODE_CHARACTERS:
        raise BadUsage(f"/pair takes the code of {CODE_CHARACTERS} characters that somebody was given: /pair ABCD2345")
    if len(words) == 1:
        return Pair(code, Role.USER)
    try:
        return Pair(code, Role(words[1].lower()))
    except ValueError:
        raise BadUsage(f"A role is user or admin, not {name(words[1])}: /pair {code} admin") from None


PAIR = Command(
    name="pair",
    summary="Admit somebody by the code they were given",
    usages=(
        Usage("/pair CODE", "admit somebody by the code they were given (admins only)"),
        Usage("/pair CODE admin", "the same, as an admin"),
    ),
    parse=parse,
    admin_only=True,
)
