"""``/workspace``: which of the configured directories this chat works in. A chat can never name a path."""

from dataclasses import dataclass

from gateway.commands.arguments import nearest
from gateway.commands.base import Command, CommandContext, Declined, Invocation, Order, Outcome, Usage
from gateway.render import name, say
from gateway.state.sessions import Session


@dataclass(frozen=True, slots=True)
class ShowWorkspaces:
    """List the configured workspaces and mark the present one."""

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with the names."""
        current = context.session.workspace
        lines = [f"This chat works in {where(context.session)}."]
        others = [other for other in sorted(context.settings.workspaces) if other != current]
        if others:
            lines += ["Others, each by /workspace and its name:", *(f"  {name(other)}" for other in others)]
        else:
            lines.append("No other is configured; they are named under workspaces: in config.yaml.")
        return Outcome((say("\n".join(lines)),))


@dataclass(frozen=True, slots=True)
class Switch:
    """Go on in another workspace, in a session of its own."""

    name: str

    order = Order.ALONE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with where the chat works now."""
        known = sorted(context.settings.workspaces)
        if self.name not in known:
            raise Declined(_unknown(self.name, known))
        if self.name == context.session.workspace:
            return Outcome((say(f"This chat works in {name(self.name)} already. /new begins a new session there."),))
        session = await context.control.begin_session(self.name)
        return Outcome(
            (
                say(
                    f"📂 Now in {where(session)}, in a new session. "
                    f"/workspace {name(context.session.workspace)} goes back to the one before."
                ),
            )
        )


def parse(text: str) -> Invocation:
    """Accept nothing, or a name."""
    word = text.strip()
    return Switch(word) if word else ShowWorkspaces()


def where(session: Session) -> str:
    """Return a session's workspace for people: its name and its directory, once where they are the same."""
    named, root = name(session.workspace), name(session.root)
    return named if named == root else f"{named} ({root})"


def _unknown(word: str, known: list[str]) -> str:
    if "/" in word or word.startswith(("~", ".")):
        return "A chat cannot name a path, only a workspace that config.yaml names. /workspace lists them."
    meant = nearest(word, known)
    hint = f"Did you mean /workspace {meant}? " if meant else ""
    return f"There is no workspace {name(word)}. {hint}/workspace lists them."


WORKSPACE = Command(
    name="workspace",
    summary="Show the workspaces, or go on in another one",
    usages=(
        Usage("/workspace", "where this chat works, and where it could"),
        Usage("/workspace NAME", "go on in another workspace, in a new session"),
    ),
    parse=parse,
)
