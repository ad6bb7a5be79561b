"""``/whoami``: the ids that an operator needs to admit a person or a chat."""

from dataclasses import dataclass

from adapters.contract import Inbound, Part, Style
from gateway.commands.arguments import no_arguments
from gateway.commands.base import Command, CommandContext, Invocation, Order, Outcome, Usage
from gateway.render import Reply, name


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """Say who the platform says this is, and where."""

    order = Order.IMMEDIATE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with the ids, as they are to be copied."""
        place = context.place
        return Outcome(
            (
                Reply(
                    (
                        Part("User: "),
                        Part(name(context.inbound.user), Style.CODE),
                        Part("\nChat: "),
                        Part(name(place.chat), Style.CODE),
                        *(_groups(context.inbound)),
                        Part(f"\nPlatform: {name(place.adapter)}\nAdmitted as: {context.role.value}"),
                    )
                ),
            )
        )


def _groups(inbound: Inbound) -> tuple[Part, ...]:
    if not inbound.circles:
        return ()
    return (Part("\nGroup: "), Part(", ".join(name(circle) for circle in inbound.circles), Style.CODE))


def parse(text: str) -> Invocation:
    """Accept no arguments."""
    no_arguments("whoami", text)
    return WhoAmI()


WHOAMI = Command(
    name="whoami",
    summary="Show your id and this chat's",
    usages=(Usage("/whoami", "your id and this chat's, as the configuration needs them"),),
    parse=parse,
)
