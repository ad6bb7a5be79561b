"""``/help``: every command, from the table itself."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapters.contract import Part, Style
from gateway.agents import direct
from gateway.commands.arguments import nearest
from gateway.commands.base import BadUsage, Command, CommandContext, Invocation, Order, Outcome, Usage
from gateway.render import Reply, name

Table = Callable[[], Sequence[Command]]


@dataclass(frozen=True, slots=True)
class Help:
    """List what some commands do, each form on a line."""

    commands: tuple[Command, ...]
    whole: bool

    order = Order.IMMEDIATE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with the forms; the whole help also says how to talk to the agent."""
        usages = [usage for command in self.commands for usage in command.usages]
        forms = Part(_columns(usages), Style.BLOCK)
        if not self.whole:
            return Outcome((Reply((forms,)),))
        kind = context.settings.agent_of(context.session.workspace).kind
        return Outcome((Reply((*_agent_help(kind), forms, Part(_NUMBERS))),))


_NUMBERS = "\nN is a number from the list /rollback showed last, or the first four or more characters of an id.\n"


def help_command(table: Table) -> Command:
    """Make the entry that describes the table it stands in."""

    def parse(text: str) -> Invocation:
        word = text.strip().removeprefix("/").lower()
        if not word:
            return Help(tuple(table()), whole=True)
        for command in table():
            if command.name == word:
                return Help((command,), whole=False)
        meant = nearest(word, [command.name for command in table()])
        hint = f"Did you mean /help {meant}? " if meant else ""
        raise BadUsage(f"There is no command {name(word)}. {hint}/help lists them all.")

    return Command(
        name="help",
        summary="List the commands",
        usages=(Usage("/help", "this list"), Usage("/help NAME", "one command alone")),
        parse=parse,
    )


def _columns(usages: Sequence[Usage]) -> str:
    width = max(len(usage.form) for usage in usages) + 2
    return "".join(f"  {usage.form:<{width}}{usage.does}\n" for usage in usages)


def _agent_help(kind: str) -> tuple[Part, ...]:
    if kind == direct.KIND:
        return (
            Part("Talk to the agent: one message is one turn.\n\n"),
            Part(direct.UNDERSTOOD, Style.BLOCK),
            Part("\nCommands:\n\n"),
        )
    return (Part("Write to the agent in your own words: one message is one turn.\n\nCommands:\n\n"),)
