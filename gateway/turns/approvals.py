"""Asks people before a tool runs: which calls are asked about, the question itself, and the wait for its answer.

Nothing is hidden in a question but the gateway's own keys: a command is shown whole and escaped, and one that is too
long to be shown is not run. No answer is a no. What a person typed is their own word and never comes here.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Literal

import anyio

from adapters.contract import Attachment, Button, Part, Place, Style
from engine.model import Understanding, Verdict, Workspace
from gateway.blotting import MARK, blotted
from gateway.config.settings import Approvals as Rule
from gateway.delivery import Delivery
from gateway.logs import hidden
from gateway.offload import Offload
from gateway.render import Reply, block, name, one_line, readable, say
from gateway.state.approvals import Approval, ApprovalState, group_of
from gateway.state.memory import Memory
from gateway.state.patience import until_stored

WHOLE_CHARACTERS = 10_000
"""The longest command that a person is asked about: what nobody reads to its end nobody can answer for."""

OUTSIDE_SHOWN = 20
"""Paths outside the workspace that are listed beside the command, which names them all."""

QUOTED_CHARACTERS = 100
"""How much of a command stands in what is said after the question."""

_WRITING = {"write_file": "content.txt", "patch": "change.patch"}
"""Tools that change files of the workspace, and the name of the file that goes along with a question about one."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Which calls wait for a person, for how long, and who may answer."""

    rule: Rule = "outside"
    timeout_s: float = 300.0
    approvers: Literal["anyone", "admins"] = "anyone"


BY_DEFAULT = Policy()


@dataclass(frozen=True, slots=True)
class Concern:
    """Why a person has to be asked; ``outside`` are the paths outside the workspace that the command names."""

    reason: str
    outside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asker:
    """The turn that asks: where its question goes, and which message that answers."""

    turn_id: int
    place: Place
    event_id: str
    workspace: Workspace


def concern_about(rule: Rule, tool: str, understood: Understanding | None) -> Concern | None:
    """Say why a tool call waits for a person, ``None`` when it does not; ``understood`` is a command's."""
    if rule == "off":
        return None
    if understood is None:
        return Concern("it changes files") if rule == "all" and tool in _WRITING else None
    if understood.verdict is Verdict.READ_ONLY or (rule == "outside" and not understood.outside):
        return None
    return Concern(understood.reason, understood.outside)


class Approvals:
    """Asks questions and lets those who wait know of the answers."""

    def __init__(self, memory: Memory, delivery: Delivery) -> None:
        self._memory = memory
        self._delivery = delivery
        self._waiting: dict[int, anyio.Event] = {}

    async def ask(
        self, asker: Asker, tool: str, arguments: Mapping[str, str], concern: Concern, policy: Policy
    ) -> Approval:
        """Ask in the chat and wait for an answer; returns the question as it was settled.

        Cancelled, it leaves the question to be closed with its turn.
        """
        approval = await self._memory.approvals.ask(
            asker.turn_id, asker.place, tool=tool, subject=blotted(_subject(arguments)), reason=concern.reason
        )
        answered = self._waiting[approval.id] = anyio.Event()
        try:
            question = _question(approval.id, asker.workspace, tool, arguments, concern, policy)
            buttons = await self._memory.buttons.mint(
                asker.place,
                question.buttons,
                # Whoever may not answer must not use the buttons up.
                once=policy.approvers == "anyone",
                group=group_of(approval.id),
            )
            await self._delivery.post(replace(question, buttons=buttons).to(asker.place, asker.event_id))
            with anyio.move_on_after(policy.timeout_s):
                await answered.wait()
            return await self._settled(asker, approval.id, policy.timeout_s)
        finally:
            del self._waiting[approval.id]

    async def _settled(self, asker: Asker, approval_id: int, timeout_s: float) -> Approval:
        approval = await until_stored(lambda: self._memory.approvals.settle(approval_id, ApprovalState.EXPIRED))
        if approval.state is ApprovalState.EXPIRED:
            subject = one_line(approval.subject, QUOTED_CHARACTERS)
            words = f"⌛ Nobody answered question #{approval_id} within {timeout_s:g} s, so this was not run: {subject}"
            await self._delivery.post(say(words).to(asker.place, asker.event_id))
        return approval

    def wake(self, approval_id: int) -> None:
        """Let the turn go on whose question was answered, once the answer is stored."""
        answered = self._waiting.get(approval_id)
        if answered is not None:
            answered.set()


Lend = Callable[[], AbstractAsyncContextManager[None]]
"""Gives back what a turn holds of the machine for as long as it waits for a person."""


class Gate:
    """What the tool calls of one turn pass through; a question shows none of ``secrets``."""

    def __init__(
        self,
        approvals: Approvals,
        offload: Offload,
        asker: Asker,
        policy: Policy,
        lend: Lend,
        *,
        secrets: Collection[str] = (),
    ) -> None:
        self._secrets = secrets
        self._approvals = approvals
        self._offload = offload
        self._asker = asker
        self._policy = policy
        self._lend = lend

    async def admit(self, tool: str, arguments: Mapping[str, str]) -> str | None:
        """Return ``None`` when a call may be made, otherwise what the agent is told instead of a result."""
        concern = await self._concern(tool, arguments)
        if concern is None:
            return None
        length = len(readable(arguments.get("command", "")))
        if length > WHOLE_CHARACTERS:
            return (
                f"Not run: a person has to read this command before it runs, and it is too long for that "
                f"({length} characters, at most {WHOLE_CHARACTERS}). Write what is long to a file and run that."
            )
        async with self._lend():
            # Known values alone: behind what only looks like a key, something might be hidden that is run.
            shown = {name: hidden(value, self._secrets, MARK) for name, value in arguments.items()}
            approval = await self._approvals.ask(self._asker, tool, shown, concern, self._policy)
        return _refusal(approval)

    async def _concern(self, tool: str, arguments: Mapping[str, str]) -> Concern | None:
        understood = None
        if tool == "terminal" and self._policy.rule != "off":
            understood = await self._offload.understand(self._asker.workspace, arguments["command"])
        return concern_about(self._policy.rule, tool, understood)


def _refusal(approval: Approval) -> str | None:
    match approval.state:
        case ApprovalState.APPROVED:
            return None
        case ApprovalState.DENIED:
            said = "a person was asked and said no"
        case ApprovalState.EXPIRED:
            said = "a person was asked and did not answer in time"
        case _:
            said = "the turn was ended while a person was being asked"
    return f"Not run: {said}. Do not look for another way to the same end; say what it was for, or go on without it."


def _subject(arguments: Mapping[str, str]) -> str:
    return arguments.get("command") or arguments.get("path") or arguments.get("text", "")


def _question(
    number: int, workspace: Workspace, tool: str, arguments: Mapping[str, str], concern: Concern, policy: Policy
) -> Reply:
    subject = _subject(arguments)
    shown = readable(subject)
    where = name(workspace.cwd)
    parts: tuple[Part, ...]
    files: tuple[Attachment, ...] = ()
    if tool == "terminal":
        opening = f"❓ Question #{number}: may the agent run this in {where}?\n"
        parts = (Part(opening), Part(f"{shown}\n", Style.BLOCK))
    else:
        what = f"write {name(subject)}" if tool == "write_file" else "make this change"
        content, files = block(arguments.get("content", subject), Style.BLOCK, _WRITING[tool])
        parts = (Part(f"❓ Question #{number}: may the agent {what} in {where}?\n"), *content)
    said = [f"Why you are asked: {readable(concern.reason)}."]
    if concern.outside:
        said.append(f"Outside the workspace: {_listed(concern.outside)}")
    if tool == "terminal" and shown != subject:
        said.append("⚠ It holds characters that cannot be shown; they stand escaped above.")
    if policy.approvers == "admins":
        said.append("Only an admin may answer.")
    said.append(f"Without an answer within {policy.timeout_s:g} s it is not run. ")
    run, deny = Button("Run", f"/approve {number}"), Button("Deny", f"/deny {number}")
    ending = (Part(run.command, Style.CODE), Part(" or "), Part(deny.command, Style.CODE), Part("\n"))
    return Reply((*parts, Part("\n".join(said)), *ending), files, (run, deny))


def _listed(paths: tuple[str, ...]) -> str:
    listed = ", ".join(name(path) for path in paths[:OUTSIDE_SHOWN])
    left = len(paths) - OUTSIDE_SHOWN
    return f"{listed} (+{left})" if left > 0 else listed
