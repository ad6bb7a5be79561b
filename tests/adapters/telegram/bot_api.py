"""A Bot API server on loopback, as strict as Telegram's and a little stricter, with the faults that a network has.

Everything that reaches it is kept in ``calls``, with what it was answered. A test lets people act through ``world`` and
waits with `until`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from aiohttp import ClientError, ClientSession, web

from tests.adapters.telegram.answers import Answers
from tests.adapters.telegram.parameters import METHODS, NAMES, Refusal, read
from tests.adapters.telegram.world import World

TOKEN = "123456:fake-token"
ME = {"id": 123456, "is_bot": True, "first_name": "Takeback", "username": "TakebackBot", "can_join_groups": True}
PATIENCE_S = 90
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"


@dataclass(frozen=True)
class Call:
    """One request: the method, what was given, and what came of it: a result or a refusal."""

    method: str
    given: dict[str, Any]
    outcome: Any


@dataclass
class Fault:
    """What goes wrong with the next calls of a method: a refusal, or a connection that is cut, before or after."""

    method: str
    refusal: Refusal | None = None
    after: bool = False
    times: int = 1


class BotApi:
    """The server; it listens as long as `serve` lasts."""

    def __init__(self) -> None:
        self.world = World(ME, self._stir)
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.routes: dict[str, str] = {}
        self.token = TOKEN
        self.webhook: dict[str, Any] = {}
        self.deliveries: list[int] = []
        self.repeated: list[dict[str, Any]] = []
        self.base = ""
        self.answers = Answers(self.world)
        self._allowed: list[str] = []
        self._poller: asyncio.Event | None = None
        self._changed = asyncio.Event()

    def fail(self, method: str, status: int = 0, description: str = "", *, times: int = 1, **parameters: Any) -> None:
        """Refuse the next calls of a method; without a status their connections are cut."""
        refusal = Refusal(status, description, **parameters) if status else None
        self.faults.append(Fault(method, refusal, times=times))

    def lose_answer(self, method: str) -> None:
        """Carry out the next call of a method, and cut its connection instead of answering."""
        self.faults.append(Fault(method, after=True))

    def called(self, method: str) -> list[dict[str, Any]]:
        """What was given to a method, in all calls that succeeded."""
        return [call.given for call in self.calls if call.method == method and not isinstance(call.outcome, Refusal)]

    def refused(self, method: str) -> list[str]:
        """How calls of a method were refused."""
        return [
            call.outcome.description
            for call in self.calls
            if call.method == method and isinstance(call.outcome, Refusal)
        ]

    async def until(self, holds: Callable[[], Any]) -> Any:
        """Wait until something is so, and return it."""
        with anyio.fail_after(PATIENCE_S):
            while not (found := holds()):
                # What the adapter does with an answer changes nothing here, so that is looked at now and then.
                with anyio.move_on_after(0.02):
                    await self._changed.wait()
        return found

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["BotApi"]:
        app = web.Application(client_max_size=100 * 1024 * 1024)
        app.router.add_route("*", "/bot{token}/{method}", self._called)
        app.router.add_get("/file/bot{token}/{path}", self._download)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        delivering = asyncio.create_task(self._deliver())
        try:
            yield self
        finally:
            delivering.cancel()
            await asyncio.gather(delivering, return_exceptions=True)
            await runner.cleanup()

    def _stir(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _called(self, request: web.Request) -> web.StreamResponse:
        method = NAMES.get(request.match_info["method"].lower(), "")
        given: dict[str, Any] = {}
        fault = next((fault for fault in self.faults if fault.method == method and fault.times), None)
        try:
            given = await _given(request)
            if fault is not None:
                fault.times -= 1
                if fault.refusal is not None:
                    raise fault.refusal
            if fault is not None and not fault.after:
                return self._cut(request)
            outcome = await self._answer(request.match_info["token"], method, given)
        except Refusal as refusal:
            outcome = refusal
        self.calls.append(Call(method, given, outcome))
        self._stir()
        if fault is not None and fault.after:
            return self._cut(request)
        if isinstance(outcome, Refusal):
            body = {"ok": False, "error_code": outcome.status, "description": outcome.description}
            if outcome.parameters:
                body["parameters"] = outcome.parameters
            return web.json_response(body, status=outcome.status)
        return web.json_response({"ok": True, "result": outcome})

    def _cut(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def _answer(self, token: str, method: str, given: dict[str, Any]) -> Any:
        if token != self.token:
            raise Refusal(401, "Unauthorized")
        if method not in METHODS:
            raise Refusal(404, "Not Found: method not found")
        values = read(method, given)
        given.clear()
        given.update(values)
        match method:
            case "getUpdates":
                return await self._updates(**values)
            case "setWebhook":
                self._allowed = values.get("allowed_updates", self._allowed)
                self.webhook = values if values["url"] else {}
                if values["url"] and not values["url"].startswith("https://"):
                    raise Refusal(400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
                self._stir()
                return True
            case "deleteWebhook":
                self.webhook = {}
                return True
            case "getWebhookInfo":
                return {
                    "url": self.webhook.get("url", ""),
                    "has_custom_certificate": False,
                    "pending_update_count": len(self.world.updates),
                }
            case _:
                return self.answers.answer(method, values)

    async def _updates(
        self,
        offset: int = 0,
        limit: int = 100,
        timeout: int = 0,  # noqa: ASYNC109 - the Bot API's own name
        allowed_updates: list[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Confirm what lies before the offset, and give what there is, waiting for it if there is nothing."""
        if self.webhook:
            raise Refusal(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook first")
        if self._poller is not None:
            self._poller.set()
        ousted = self._poller = asyncio.Event()
        if allowed_updates is not None:
            self._allowed = allowed_updates
        self.world.updates[:] = [
            update for update in self.world.updates if update["update_id"] >= offset and self._is_wanted(update)
        ]
        try:
            async with asyncio.timeout(timeout):
                while not (found := self._found()):
                    waits = [asyncio.ensure_future(event.wait()) for event in (self._changed, ousted)]
                    try:
                        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        for wait in waits:
                            wait.cancel()
                    if ousted.is_set():
                        raise Refusal(409, "Conflict: terminated by other getUpdates request")
        except TimeoutError:
            found = self._found()
        finally:
            if self._poller is ousted:
                self._poller = None
        return found[:limit]

    def _found(self) -> list[dict[str, Any]]:
        """What is not confirmed, and what Telegram gives out again although it is."""
        repeated, self.repeated = self.repeated, []
        return repeated + [update for update in self.world.updates if self._is_wanted(update)]

    def repeat(self, update: dict[str, Any]) -> None:
        """Give an update out once more, as when its confirmation was lost."""
        self.repeated.append(update)
        self._stir()

    def _is_wanted(self, update: dict[str, Any]) -> bool:
        return not self._allowed or any(kind in update for kind in self._allowed)

    async def _deliver(self) -> None:
        """Deliver updates to the webhook, one after another, each until it is answered with success."""
        async with ClientSession() as session:
            while True:
                changed = self._changed
                updates = [update for update in self.world.updates if self._is_wanted(update)]
                if not (self.webhook and updates):
                    await changed.wait()
                    continue
                headers = {SECRET_HEADER: self.webhook.get("secret_token", "")}
                try:
                    async with session.post(
                        self.routes[self.webhook["url"]], data=json.dumps(updates[0]), headers=headers
                    ) as answer:
                        status = answer.status
                except ClientError:
                    status = 0
                self.deliveries.append(status)
                if status == 200:
                    self.world.updates.remove(updates[0])
                else:
                    await asyncio.sleep(0.05)
                self._stir()

    async def _download(self, request: web.Request) -> web.StreamResponse:
        content = self.world.files.get(request.match_info["path"].removeprefix("documents-"))
        if request.match_info["token"] != self.token or content is None:
            return web.json_response({"ok": False, "error_code": 404, "description": "Not Found"}, status=404)
        fault = next((fault for fault in self.faults if fault.method == "download" and fault.times), None)
        if fault is not None:
            fault.times -= 1
            return self._cut(request)
        return web.Response(body=content)


async def _given(request: web.Request) -> dict[str, Any]:
    """The parameters of a request in any of the forms that Telegram takes; a file is its name and its content."""
    given: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        given |= await request.json()
    elif request.method == "POST":
        for name, value in (await request.post()).items():
            given[name] = (value.filename, value.file.read()) if isinstance(value, web.FileField) else value
    return given
