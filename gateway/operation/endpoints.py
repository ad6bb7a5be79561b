"""Shows over HTTP how the gateway is: ``/healthz`` (alive), ``/readyz`` (ready, else why not), ``/metrics``.

Nothing that people wrote, no name and no id is shown. What serves is imported when it is started.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import TaskStatus

from gateway.operation.health import Health
from gateway.operation.measures import Levels

if TYPE_CHECKING:
    from aiohttp import web

    from gateway.operation.metrics import Metrics

GOODBYE_S = 0.5
"""How long an answer under way may still take when the gateway stops."""

_log = logging.getLogger(__name__)


class EndpointsUnusable(Exception):
    """The address cannot be listened on."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        super().__init__(
            f"{host} port {port} cannot be listened on: {reason}. Set http.port to another one, or to 0 for any."
        )


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 takes any that is free."""

    host: str
    port: int


def make_metrics() -> "Metrics":
    """Make what counts; it is imported only where somebody asks for the numbers."""
    from gateway.operation.metrics import Metrics

    return Metrics()


class Endpoints:
    """What one run shows; ``levels`` is asked when the numbers are."""

    def __init__(
        self, address: Address, health: Health, metrics: "Metrics", levels: Callable[[], Awaitable[Levels]]
    ) -> None:
        self._address = address
        self._health = health
        self._metrics = metrics
        self._levels = levels

    async def run(self, *, task_status: TaskStatus[Address] = anyio.TASK_STATUS_IGNORED) -> None:
        """Listen until cancelled; the address that was taken is given once it is.

        Raises:
            EndpointsUnusable: it cannot be listened on.
        """
        from aiohttp import web

        application = web.Application()
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics_text)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=GOODBYE_S)
        await runner.setup()
        try:
            taken = await self._listen(runner)
            _log.info("serving health and metrics", extra={"address": f"http://{taken.host}:{taken.port}"})
            task_status.started(taken)
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await runner.cleanup()

    async def _listen(self, runner: "web.AppRunner") -> Address:
        from aiohttp import web

        host, port = self._address.host, self._address.port
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise EndpointsUnusable(host, port, error.strerror or str(error)) from error
        return Address(host, runner.addresses[0][1])

    async def _healthz(self, _request: "web.Request") -> "web.Response":
        from aiohttp import web

        return web.json_response({"status": "alive"})

    async def _readyz(self, _request: "web.Request") -> "web.Response":
        from aiohttp import web

        readiness = await self._health.readiness()
        checks = {check.part: "ok" if check.reason is None else check.reason for check in readiness.checks}
        status = "ready" if readiness.ready else "not ready"
        return web.json_response({"status": status, "checks": checks}, status=200 if readiness.ready else 503)

    async def _metrics_text(self, _request: "web.Request") -> "web.Response":
        from aiohttp import web

        from gateway.operation.metrics import CONTENT_TYPE

        self._metrics.show(await self._levels())
        text = await to_thread.run_sync(self._metrics.text)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})
