"""Takes in what a platform delivers to an address, which a reverse proxy leads to this process."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from aiohttp import web

from adapters.contract import ConnectionFailed

FAREWELL_S = 2.0
"""How long a delivery that is being handed on may take once the gateway stops."""


@dataclass(frozen=True, slots=True)
class Door:
    """Where this process listens for the proxy; ``setting`` is the key of the port in the configuration."""

    platform: str
    host: str
    port: int
    path: str
    setting: str


@asynccontextmanager
async def listening(door: Door, deliver: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[None]:
    """Answer each POST to the door's path by ``deliver``, for a block; nothing is kept that it has not answered.

    Raises:
        ConnectionFailed: the port cannot be listened on.
    """
    app = web.Application()
    app.router.add_post(door.path, deliver)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=FAREWELL_S)
    await runner.setup()
    try:
        await _bind(runner, door)
        yield
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()


async def _bind(runner: web.AppRunner, door: Door) -> None:
    try:
        await web.TCPSite(runner, door.host, door.port).start()
    except OSError as error:
        where = f"{door.host}:{door.port} for {door.platform}'s deliveries"
        reason = f"cannot listen on {where} ({error.strerror}); see {door.setting}"
        raise ConnectionFailed(reason, permanent=False) from error
