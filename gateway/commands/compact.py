"""``/compact``: sum up the conversation now, so that the model is shown less of it."""

from dataclasses import dataclass

from gateway.commands.arguments import no_arguments
from gateway.commands.base import Command, CommandContext, Declined, Invocation, Order, Outcome, Usage
from gateway.render import counted, say


@dataclass(frozen=True, slots=True)
class Compact:
    """Sum up everything up to now."""

    order = Order.ALONE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with how long the summary is and who made it."""
        agent = context.settings.agent_of(context.session.workspace)
        if agent.kind == "direct":
            raise Declined("The direct agent is shown nothing of the conversation, so there is nothing to sum up.")
        compaction = await context.control.compact()
        if compaction is None:
            return Outcome((say("There is nothing to sum up: nothing was said since the last summary."),))
        return Outcome(
            (
                say(
                    f"🗜 Summed up in {counted(len(compaction.summary), 'character')} (by: {compaction.made_by}). "
                    "From now on the agent is shown that instead of what was said; turns, files and checkpoints stay, "
                    "and /undo and /rollback work as before."
                ),
            )
        )


def _parse(text: str) -> Invocation:
    no_arguments("compact", text)
    return Compact()


COMPACT = Command(
    name="compact",
    summary="Sum up the conversation for the agent",
    usages=(Usage("/compact", "sum up the conversation, so that the agent is shown less; nothing is lost"),),
    parse=_parse,
)
