"""A whole gateway in the test's process whose agent asks a scripted model's server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.agents.model.agent import ModelAgent
from gateway.agents.model.asking import Patience
from tests.gateway.agents.model.server import ModelServer
from tests.gateway.commands.kit import Chat, Gateway, running_gateway, settings_for

AT_ONCE = Patience(attempts=3, first_wait_s=0.0, longest_wait_s=0.0)
"""Tries again without a pause."""


@asynccontextmanager
async def gateway_with(server: ModelServer, home: Path, app: Path, **agent: object) -> AsyncIterator[Gateway]:
    """A gateway over a workspace; ``agent`` are more keys of that section."""
    settings = settings_for(app, agent=server.settings(**agent))
    answers = ModelAgent(settings.agent, patience=AT_ONCE)
    async with running_gateway(home, settings, agents={answers.kind: answers}) as gateway:
        yield gateway


@asynccontextmanager
async def chat_with(server: ModelServer, home: Path, app: Path, **agent: object) -> AsyncIterator[Chat]:
    """One chat of such a gateway."""
    async with gateway_with(server, home, app, **agent) as gateway:
        yield gateway.chat()
