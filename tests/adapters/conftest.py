"""A stand-in for the far side of the contract: takes messages in, answers them, and says that they are done.

What reads ``refuse me`` is not taken in; a notice says so.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
import pytest
from anyio.abc import TaskGroup
from blockbuster import blockbuster_ctx

from adapters.contract import Adapter, Attachment, Button, Inbound, Outbound, Part, Reception


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def _nothing_blocks_the_loop():
    with blockbuster_ctx("adapters"):
        yield


@dataclass
class Answering:
    """Answers each message in a task of its own with what ``answers`` holds for its text, else by repeating it."""

    adapter: Adapter
    tasks: TaskGroup
    answers: dict[str, Callable[[Inbound], Awaitable[None]]] = field(default_factory=dict)
    received: list[Inbound] = field(default_factory=list)
    notices: dict[str, str] = field(default_factory=lambda: {"refuse me": "You are\x1b not admitted."})

    async def receive(self, inbound: Inbound) -> Reception:
        if inbound.text in self.notices:
            return Reception(self.notices[inbound.text])
        self.received.append(inbound)
        self.tasks.start_soon(self._answer, inbound)
        return Reception()

    async def _answer(self, inbound: Inbound) -> None:
        if inbound.text in self.answers:
            await self.answers[inbound.text](inbound)
        else:
            await self.say(inbound, f"you said {inbound.text}")
        await self.adapter.finished(inbound.place, inbound.event_id)

    async def say(
        self, inbound: Inbound, *parts: str | Part, files: tuple[Attachment, ...] = (), buttons: tuple[Button, ...] = ()
    ) -> None:
        marked = tuple(Part(part) if isinstance(part, str) else part for part in parts)
        await self.adapter.send(Outbound(inbound.place, marked, files, buttons, inbound.event_id))


@pytest.fixture
async def converse():
    """Runs an adapter to its end against an `Answering`, which it returns."""

    async def run(adapter: Adapter, **answers: Callable[[Answering, Inbound], Awaitable[None]]) -> Answering:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                answering = Answering(adapter, tasks)
                for text, answer in answers.items():
                    answering.answers[text] = _bound(answer, answering)
                await adapter.run(answering.receive)
        return answering

    return run


def _bound(
    answer: Callable[[Answering, Inbound], Awaitable[None]], answering: Answering
) -> Callable[[Inbound], Awaitable[None]]:
    async def bound(inbound: Inbound) -> None:
        await answer(answering, inbound)

    return bound
