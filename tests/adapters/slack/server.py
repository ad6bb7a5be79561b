"""A Slack on loopback, as strict as the real one and a little stricter, with the faults that a network has.

It has the Web API, Socket Mode and HTTP deliveries. Events that are not acknowledged in time are delivered again;
commands and presses are not. Everything that reaches it is kept in ``calls``, with what it was answered. A test lets
people act through ``world`` and waits with `until`.
"""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import anyio
from aiohttp import ClientError, ClientSession, ClientTimeout, WSMsgType, web

from tests.adapters.slack.answers import Answers
from tests.adapters.slack.limits import Refusal, check_message
from tests.adapters.slack.world import BOT, World

BOT_TOKEN, APP_TOKEN, SECRET = "xoxb-good", "xapp-good", "0123456789abcdef"
PATIENCE_S = 60
ACK_S = 3.0
RETRIES = 3
AGAIN_S = 0.1
"""Slack waits longer before it delivers again."""


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


@dataclass(eq=False)
class Delivery:
    """Something that is delivered until it is acknowledged, with the number of each attempt."""

    kind: str
    payload: dict[str, Any]
    attempts: int = 0
    acknowledged: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(eq=False)
class Connection:
    """A socket that the app has opened; a silent one is dead, and nobody has said so."""

    socket: web.WebSocketResponse
    silent: bool = False
    leaving: bool = False


class SlackServer:
    """The server; it listens as long as `serve` lasts."""

    def __init__(self, *, ack_s: float = ACK_S) -> None:
        self.world = World(self._happen)
        self.answers = Answers(self.world)
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.deliveries: list[Delivery] = []
        self.connections: list[Connection] = []
        self.opened = 0
        self.ack_s = ack_s
        self.bot_token, self.app_token = BOT_TOKEN, APP_TOKEN
        self.request_url = ""
        self.secret = SECRET
        self.statuses: list[int] = []
        self.wrong: list[str] = []
        self.lost = 0
        self._envelopes: dict[str, Delivery] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()

    def fail(self, method: str, error: str = "", *, times: int = 1, retry_after: int | None = None) -> None:
        """Refuse the next calls of a method; without an error their connections are cut."""
        self.faults.append(Fault(method, Refusal(error, retry_after=retry_after) if error else None, times=times))

    def lose_answer(self, method: str) -> None:
        """Carry out the next call of a method, and cut its connection instead of answering."""
        self.faults.append(Fault(method, after=True))

    def lose_delivery(self) -> None:
        """Lose the first attempt at the next delivery, so that only its repetition comes."""
        self.lost += 1

    def repeat(self, payload: dict[str, Any]) -> None:
        """Deliver an event once more, as when its acknowledgement was lost."""
        self._happen("events_api", payload)

    async def replace(self, *, after_s: float = 0.3) -> None:
        """Ask for another connection, and end this one a little later."""
        for connection in self.connections:
            connection.leaving = True
            await connection.socket.send_json({"type": "disconnect", "reason": "refresh_requested"})
            self._start(self._end(connection, after_s))

    def drop(self) -> None:
        """Cut all connections."""
        for connection in self.connections:
            transport = connection.socket._req.transport
            if transport is not None:
                transport.abort()

    def go_silent(self) -> None:
        """Let the connections die without a word."""
        for connection in self.connections:
            connection.silent = True

    def called(self, method: str) -> list[dict[str, Any]]:
        """What was given to a method, in all calls that succeeded."""
        return [call.given for call in self.calls if call.method == method and not isinstance(call.outcome, Refusal)]

    def refused(self) -> list[str]:
        """How calls were refused."""
        return [f"{call.method}: {call.outcome}" for call in self.calls if isinstance(call.outcome, Refusal)]

    def unacknowledged(self) -> list[Delivery]:
        return [delivery for delivery in self.deliveries if not delivery.acknowledged]

    async def until(self, holds: Callable[[], Any]) -> Any:
        """Wait until something is so, and return it."""
        with anyio.fail_after(PATIENCE_S):
            while not (found := holds()):
                # What the adapter does with an answer changes nothing here, so that is looked at now and then.
                with anyio.move_on_after(0.02):
                    await self._changed.wait()
        return found

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["SlackServer"]:
        app = web.Application(client_max_size=100 * 1024 * 1024)
        app.router.add_route("*", "/api/{method}", self._called)
        app.router.add_get("/link", self._link)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_post("/response/{name}", self._respond)
        app.router.add_get("/files-pri/{file}/{name}", self._download)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.world.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            async with ClientSession() as self._session:
                yield self
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await runner.cleanup()

    @property
    def api_base(self) -> str:
        return f"{self.world.base}/api"

    def stir(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _called(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        fault = next((fault for fault in self.faults if fault.method == method and fault.times), None)
        given: dict[str, Any] = {}
        try:
            given = await _given(request)
            if fault is not None:
                fault.times -= 1
                if fault.refusal is not None:
                    raise fault.refusal
                if not fault.after:
                    return _cut(request)
            outcome: Any = self._answer(request, method, given)
        except Refusal as refusal:
            outcome = refusal
        self.calls.append(Call(method, given, outcome))
        self.stir()
        if fault is not None and fault.after:
            return _cut(request)
        if isinstance(outcome, Refusal):
            if outcome.retry_after is not None:
                headers = {"Retry-After": str(outcome.retry_after)}
                return web.json_response({"ok": False, "error": outcome.error}, status=429, headers=headers)
            return web.json_response({"ok": False, "error": outcome.error, **outcome.more})
        return web.json_response({"ok": True, **outcome})

    def _answer(self, request: web.Request, method: str, given: dict[str, Any]) -> dict[str, Any]:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token != (self.app_token if method == "apps.connections.open" else self.bot_token):
            raise Refusal("invalid_auth")
        return self.answers.answer(method, given)

    async def _upload(self, request: web.Request) -> web.Response:
        self.answers.uploads[request.match_info["file"]]["content"] = await request.read()
        return web.Response(text="OK - 1")

    async def _respond(self, request: web.Request) -> web.Response:
        """What is said by the address that came with a command or a press: for its person alone, unless asked else."""
        given = await request.json()
        if request.match_info["name"] not in self.world.answers:
            return web.Response(status=404, text="expired_url")
        channel, person, pressed = self.world.answers[request.match_info["name"]]
        if given == {"delete_original": True} and pressed is not None:
            del self.world.messages[channel, pressed["ts"]]
            self.stir()
            return web.Response(text="ok")
        try:
            check_message(given.get("text"), given.get("blocks"))
        except Refusal as refusal:
            self.wrong.append(str(refusal))
            return web.Response(status=400)
        content = {"user": BOT, "text": given["text"], "blocks": given.get("blocks") or [], "only_for": person}
        if given.get("response_type") == "in_channel":
            del content["only_for"]
        self.world.write(channel, given.get("thread_ts"), content)
        self.stir()
        return web.Response(text="ok")

    async def _download(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != f"Bearer {self.bot_token}":
            return web.Response(text="<html>sign in</html>", content_type="text/html")
        if next((fault for fault in self.faults if fault.method == "download" and fault.times), None) is not None:
            return _cut(request)
        return web.Response(body=self.world.content[request.match_info["file"]], content_type="text/plain")

    def _happen(self, kind: str, payload: dict[str, Any]) -> None:
        delivery = Delivery(kind, payload)
        self.deliveries.append(delivery)
        self._start(self._deliver(delivery))

    async def _deliver(self, delivery: Delivery) -> None:
        while delivery.attempts <= (RETRIES if delivery.kind == "events_api" else 0):
            if self.lost:
                self.lost -= 1
            elif self.request_url:
                await self._post(delivery)
            else:
                await self._send(delivery)
            delivery.attempts += 1
            self.stir()
            if delivery.acknowledged:
                return
            await asyncio.sleep(AGAIN_S)

    async def _send(self, delivery: Delivery) -> None:
        envelope = f"{len(self.deliveries)}-{self.deliveries.index(delivery)}-{delivery.attempts}"
        said = {
            "envelope_id": envelope,
            "type": delivery.kind,
            "payload": delivery.payload,
            "accepts_response_payload": delivery.kind != "events_api",
            "retry_attempt": delivery.attempts,
            "retry_reason": "timeout" if delivery.attempts else "",
        }
        while not (living := [connection for connection in self.connections if not connection.leaving]):
            await self._changed.wait()
        self._envelopes[envelope] = delivery
        try:
            if not living[-1].silent:
                await living[-1].socket.send_json(said)
            await asyncio.wait_for(delivery.changed.wait(), self.ack_s)
        except (TimeoutError, ConnectionError):
            pass

    async def _post(self, delivery: Delivery) -> None:
        if delivery.kind == "events_api":
            body, content_type = json.dumps(delivery.payload), "application/json"
        else:
            form = {"payload": json.dumps(delivery.payload)} if delivery.kind == "interactive" else delivery.payload
            body, content_type = urlencode(form), "application/x-www-form-urlencoded"
        headers = {"Content-Type": content_type, **self.signed(body)}
        if delivery.attempts:
            headers |= {"X-Slack-Retry-Num": str(delivery.attempts), "X-Slack-Retry-Reason": "http_timeout"}
        status, _ = await self.post(body, headers)
        delivery.acknowledged = status == 200

    def signed(self, body: str, *, at: float | None = None) -> dict[str, str]:
        """The headers that prove that Slack sent something."""
        moment = str(int(time.time() if at is None else at))
        digest = hmac.new(self.secret.encode(), f"v0:{moment}:{body}".encode(), hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": moment, "X-Slack-Signature": f"v0={digest}"}

    async def post(self, body: str, headers: dict[str, str]) -> tuple[int, str]:
        """Deliver by HTTP; the status, 0 for none in time."""
        try:
            timeout = ClientTimeout(total=self.ack_s)
            async with self._session.post(self.request_url, data=body, headers=headers, timeout=timeout) as answer:
                status, text = answer.status, await answer.text()
        except (ClientError, TimeoutError):
            status, text = 0, ""
        self.statuses.append(status)
        self.stir()
        return status, text

    async def _link(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("ticket") not in self.answers.tickets:
            return web.Response(status=403)
        self.answers.tickets.remove(request.query["ticket"])
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        connection = Connection(socket)
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A0APP"}})
        self.connections.append(connection)
        self.opened += 1
        self.stir()
        try:
            async for message in socket:
                if connection.silent:
                    continue
                if message.type is WSMsgType.PING:
                    await socket.pong(message.data)
                elif message.type is WSMsgType.TEXT:
                    self._acknowledge(message.json())
        finally:
            self.connections.remove(connection)
            self.stir()
        return socket

    def _acknowledge(self, said: dict[str, Any]) -> None:
        delivery = self._envelopes.get(said.get("envelope_id", ""))
        if delivery is None:
            self.wrong.append(f"acknowledged what was not delivered: {said}")
            return
        delivery.acknowledged = True
        delivery.changed.set()
        self.stir()

    async def _end(self, connection: Connection, after_s: float) -> None:
        await asyncio.sleep(after_s)
        await connection.socket.close()


def _cut(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def _given(request: web.Request) -> dict[str, Any]:
    """The parameters of a request in any of the forms that Slack takes."""
    given: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        given |= await request.json()
    elif request.method == "POST":
        given |= dict(await request.post())
    flags = {"1": True, "0": False}
    return {
        key: flags.get(value, value) if key.startswith("unfurl") or key == "mrkdwn" else value
        for key, value in given.items()
        if key != "token"
    }
