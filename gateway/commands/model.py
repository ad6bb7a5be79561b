"""``/model``: which of the configured models answers in this session."""

from dataclasses import dataclass

from gateway.commands.arguments import nearest
from gateway.commands.base import Command, CommandContext, Declined, Invocation, Order, Outcome, Usage
from gateway.config import Agent
from gateway.render import name, say

HOW_TO_CONNECT = """\
No model answers here: the agent of this workspace is {kind}. To connect one, name it in config.yaml:

agent: {{kind: model, model: "openai:…"}}
"""


@dataclass(frozen=True, slots=True)
class ShowModels:
    """List the configured models and mark the one that answers."""

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with their names."""
        agent = context.settings.agent_of(context.session.workspace)
        if agent.kind != "model":
            return Outcome((say(HOW_TO_CONNECT.format(kind=agent.kind)),))
        current = agent.choice(context.session.model)
        lines = [f"{current.shown} answers in this session."]
        others = [choice for label, choice in agent.choices().items() if label != current.label]
        if others:
            lines += ["Others, each by /model and its name:", *(f"  {choice.shown}" for choice in others)]
        else:
            lines.append("No other is configured; they are named under agent.models in config.yaml.")
        return Outcome((say("\n".join(lines)),))


@dataclass(frozen=True, slots=True)
class Choose:
    """Have another model answer from the next turn on."""

    wanted: str

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with the model that is chosen now."""
        agent = context.settings.agent_of(context.session.workspace)
        if agent.kind != "model":
            raise Declined(HOW_TO_CONNECT.format(kind=agent.kind))
        label = _find(agent, self.wanted)
        choice = agent.choice(label)
        # The first one is what holds without a choice; it stays that when the configuration changes.
        is_default = label == next(iter(agent.choices()))
        await context.memory.sessions.set_model(context.session.id, None if is_default else label)
        back = "" if is_default else f" /model {name(next(iter(agent.choices())))} goes back."
        return Outcome((say(f"🧠 {choice.shown} answers from the next turn on.{back}"),))


def parse(text: str) -> Invocation:
    """Accept nothing, or a name."""
    word = text.strip()
    return Choose(word) if word else ShowModels()


def _find(agent: Agent, word: str) -> str:
    """The label that is meant by a word: a label, or the model as its provider calls it.

    Raises:
        Declined: there is none.
    """
    choices = agent.choices()
    for label, choice in choices.items():
        if word.casefold() in {label.casefold(), choice.model.casefold(), choice.name.casefold()}:
            return label
    meant = nearest(word, [*choices])
    hint = f"Did you mean /model {meant}? " if meant else ""
    raise Declined(f"There is no model {name(word)}; only config.yaml names them. {hint}/model lists them.")


MODEL = Command(
    name="model",
    summary="Show the models, or have another one answer",
    usages=(
        Usage("/model", "which model answers in this session, and which could"),
        Usage("/model NAME", "have another configured model answer in this session"),
    ),
    parse=parse,
)
