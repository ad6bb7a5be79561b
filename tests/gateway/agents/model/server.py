"""A model's server on loopback that speaks OpenAI's chat completions and Anthropic's messages, scripted by a test.

It is as strict as the real ones: a request that those would refuse is refused, and noted in ``complaints``.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import anyio
from aiohttp import web

KEY = "sk-test-0123456789abcdef"
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Call:
    """A call of a tool, as the model writes it; ``raw`` are arguments that are no JSON."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    raw: str | None = None

    @property
    def text(self) -> str:
        return json.dumps(dict(self.arguments)) if self.raw is None else self.raw


@dataclass(frozen=True)
class Says:
    """An answer: words, then calls."""

    text: str = ""
    calls: Sequence[Call] = ()
    tokens: tuple[int, int] = (100, 10)
    ends: str | None = None
    """The reason for its end in the words of its API, if not the usual one."""


@dataclass(frozen=True)
class Fails:
    """An error instead of an answer; ``in_stream`` sends it after the answer has begun."""

    status: int
    body: Mapping[str, Any] | str = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    in_stream: bool = False


@dataclass(frozen=True)
class Breaks:
    """The connection ends after some words; ``politely``, as if that were all."""

    text: str = "half of an ans"
    politely: bool = False


@dataclass(frozen=True)
class Hangs:
    """Some words, then nothing until the other side gives up."""

    text: str = "wait for it"


Scripted = Says | Fails | Breaks | Hangs


@dataclass
class ModelServer:
    """What a test scripts and looks at. ``requests`` are the bodies in order, ``keys`` what each was sent with."""

    wire: str
    name: str = "scripted-1"
    """The model that is asked for and that answers."""
    port: int = 0
    script: list[Scripted] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    asked: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)
    """Set when the other side has given up on an answer that hangs."""

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}" + ("/v1" if self.wire == "openai" else "")

    @property
    def model(self) -> str:
        return f"{self.wire}:{self.name}"

    def settings(self, **more: object) -> dict[str, Any]:
        """The section ``agent`` of a configuration that uses it."""
        return {"kind": "model", "model": self.model, "base_url": self.base_url, "api_key": KEY, **more}

    def will(self, *script: Scripted) -> None:
        """Add to what it answers, in order."""
        self.script += script

    async def until_asked(self, count: int = 1) -> None:
        with anyio.fail_after(PATIENCE_S):
            while len(self.requests) < count:
                await self.asked.wait()

    def heard(self, number: int = -1) -> list[tuple[str, ...]]:
        """The messages of a request, in words that are the same for both APIs."""
        body = self.requests[number]
        return [*(_openai_heard if self.wire == "openai" else _anthropic_heard)(body)]

    def instructions(self, number: int = -1) -> str:
        body = self.requests[number]
        if self.wire == "openai":
            return str(body["messages"][0]["content"])
        system = body["system"]
        return system if isinstance(system, str) else "".join(block["text"] for block in system)


def _openai_heard(body: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for message in body["messages"]:
        match message["role"]:
            case "user":
                yield from _contents(message["content"])
            case "assistant":
                if message.get("content"):
                    yield ("assistant", message["content"])
                for call in message.get("tool_calls") or ():
                    yield ("call", call["function"]["name"], call["function"]["arguments"])
            case "tool":
                content = message["content"]
                failed = content.startswith('{"error":')
                yield ("error", json.loads(content)["error"]) if failed else ("result", content)


def _anthropic_heard(body: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for message in body["messages"]:
        blocks = message["content"]
        for block in [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks:
            match block["type"]:
                case "text":
                    yield (message["role"], block["text"])
                case "tool_use":
                    yield ("call", block["name"], json.dumps(block["input"], separators=(",", ":")))
                case "tool_result":
                    inner = block["content"]
                    words = inner if isinstance(inner, str) else "".join(part["text"] for part in inner)
                    yield ("error" if block.get("is_error") else "result", words)
                case kind:
                    yield ("user", f"<{kind}>")


def _contents(content: Any) -> Iterator[tuple[str, ...]]:
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        yield ("user", part["text"] if part["type"] == "text" else f"<{part['type']}>")


@asynccontextmanager
async def model_server(wire: str, name: str = "scripted-1") -> AsyncIterator[ModelServer]:
    """Serve until the block ends; what was odd about a request fails the test."""
    server = ModelServer(wire, name)
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _handler(server, _Openai(name)))
    app.router.add_post("/v1/messages", _handler(server, _Anthropic(name)))
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()
    assert server.complaints == []


class Refused(Exception):
    """A request that a real server would not take."""


def _handler(server: ModelServer, wire: "_Openai | _Anthropic") -> Any:
    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        try:
            server.keys.append(wire.key(request))
            wire.check(body)
        except (Refused, KeyError, TypeError) as error:
            server.complaints.append(f"{type(error).__name__}: {error}")
            return web.json_response({"error": {"message": f"refused: {error}"}}, status=400)
        server.requests.append(body)
        server.asked.set()
        server.asked = anyio.Event()
        if not server.script:
            server.complaints.append("was asked once more than the script says")
            return web.json_response({"error": {"message": "nothing scripted"}}, status=400)
        return await _play(server, wire, request, server.script.pop(0))

    return handle


async def _play(
    server: ModelServer, wire: "_Openai | _Anthropic", request: web.Request, act: Scripted
) -> web.StreamResponse:
    if isinstance(act, Fails) and not act.in_stream:
        text = act.body if isinstance(act.body, str) else json.dumps(act.body)
        return web.Response(status=act.status, text=text, headers=act.headers, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    try:
        if isinstance(act, Says):
            await response.write(wire.stream(act))
        elif isinstance(act, Fails):
            await response.write(wire.beginning("so far"))
            await response.write(wire.error(act))
        else:
            await response.write(wire.beginning(act.text))
            if isinstance(act, Breaks) and act.politely:
                return response
            if isinstance(act, Breaks):
                assert request.transport is not None
                request.transport.abort()
            else:
                await anyio.sleep_forever()
    except BaseException:
        server.left.set()
        raise
    return response


def _event(data: Mapping[str, Any] | str, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def _require(condition: object, complaint: str) -> None:
    if not condition:
        raise Refused(complaint)


@dataclass(frozen=True)
class _Openai:
    """Chat completions."""

    name: str

    known: ClassVar = frozenset(
        {"model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls"}
    )

    def key(self, request: web.Request) -> str:
        scheme, _, key = request.headers["Authorization"].partition(" ")
        _require(scheme == "Bearer", "no bearer token")
        return key

    def check(self, body: Mapping[str, Any]) -> None:
        _require(set(body) <= self.known, f"unknown keys: {set(body) - self.known}")
        _require(body["stream"] is True and body["stream_options"] == {"include_usage": True}, "is not streamed")
        for tool in body.get("tools", ()):
            _require(tool["type"] == "function" and tool["function"]["parameters"]["type"] == "object", "odd tool")
        open_calls: list[str] = []
        for number, message in enumerate(body["messages"]):
            role = message["role"]
            _require((role == "system") == (number == 0), "one system message comes first")
            if role == "tool":
                _require(message["tool_call_id"] in open_calls, "a result without its call")
                open_calls.remove(message["tool_call_id"])
                continue
            _require(not open_calls, f"calls without results: {open_calls}")
            if role == "assistant":
                open_calls = [call["id"] for call in message.get("tool_calls") or ()]
                for call in message.get("tool_calls") or ():
                    _require(isinstance(json.loads(call["function"]["arguments"]), dict), "arguments are no object")
                _require(open_calls or message["content"], "an empty message")
            else:
                _require(role in {"user", "system"} and message["content"], f"odd message of {role}")
        _require(not open_calls and body["messages"][-1]["role"] in {"user", "tool"}, "nothing is asked")

    def stream(self, says: Says) -> bytes:
        chunks = [self._chunk({"content": piece}) for piece in _pieces(says.text)]
        for index, call in enumerate(says.calls):
            named = {"index": index, "id": f"call_{index}", "type": "function"}
            chunks.append(self._chunk({"tool_calls": [{**named, "function": {"name": call.name, "arguments": ""}}]}))
            chunks += [
                self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
                for piece in _pieces(call.text)
            ]
        ends = says.ends or ("tool_calls" if says.calls else "stop")
        read, written = says.tokens
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        end = {**self._frame(), "choices": [{"index": 0, "delta": {}, "finish_reason": ends}]}
        return b"".join(
            [*chunks, _event(end), _event({**self._frame(), "choices": [], "usage": usage}), _event("[DONE]")]
        )

    def beginning(self, text: str) -> bytes:
        return self._chunk({"content": text})

    def error(self, fails: Fails) -> bytes:
        return _event(fails.body)

    def _chunk(self, delta: Mapping[str, Any]) -> bytes:
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}
        return _event({**self._frame(), "choices": [choice]})

    def _frame(self) -> dict[str, Any]:
        return {"id": "c-1", "object": "chat.completion.chunk", "created": 1700000000, "model": self.name}


@dataclass(frozen=True)
class _Anthropic:
    """Messages."""

    name: str

    known: ClassVar = frozenset(
        {"model", "messages", "system", "max_tokens", "stream", "tools", "tool_choice", "cache_control"}
    )

    def key(self, request: web.Request) -> str:
        _require(request.headers["anthropic-version"], "no version")
        sent = [request.headers[name] for name in ("x-api-key", "Authorization") if name in request.headers]
        _require(len(sent) == 1, "not one credential")
        return sent[0].removeprefix("Bearer ")

    def check(self, body: Mapping[str, Any]) -> None:
        _require(set(body) <= self.known, f"unknown keys: {set(body) - self.known}")
        _require(body["stream"] is True and body["max_tokens"] > 0 and body["system"], "lacks what it needs")
        for tool in body.get("tools", ()):
            _require(tool["input_schema"]["type"] == "object", "odd tool")
        open_calls: list[str] = []
        for number, message in enumerate(body["messages"]):
            _require(message["role"] == ("assistant" if number % 2 else "user"), "roles do not alternate")
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            _require(blocks, "an empty message")
            results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            _require(sorted(results) == sorted(open_calls), f"calls {open_calls} have results {results}")
            kinds = [block["type"] == "tool_result" for block in blocks]
            _require(kinds == sorted(kinds, reverse=True), "results do not come first")
            _require(all(block["text"].strip() for block in blocks if block["type"] == "text"), "empty text")
            open_calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
            _require(all(isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use"), "input")
        _require(not open_calls and len(body["messages"]) % 2, "nothing is asked")

    def stream(self, says: Says) -> bytes:
        blocks: list[bytes] = []
        index = 0
        if says.text:
            blocks += self._block(index, {"type": "text", "text": ""}, "text_delta", "text", says.text)
            index += 1
        for call in says.calls:
            start = {"type": "tool_use", "id": f"toolu_{index}", "name": call.name, "input": {}}
            blocks += self._block(index, start, "input_json_delta", "partial_json", call.text)
            index += 1
        ends = says.ends or ("tool_use" if says.calls else "end_turn")
        read, written = says.tokens
        delta = {"stop_reason": ends, "stop_sequence": None}
        usage = {"input_tokens": read, "output_tokens": written}
        closing = {"type": "message_delta", "delta": delta, "usage": usage}
        return b"".join(
            [
                self._start(read),
                *blocks,
                _event(closing, "message_delta"),
                _event({"type": "message_stop"}, "message_stop"),
            ]
        )

    def beginning(self, text: str) -> bytes:
        return self._start(1) + b"".join(self._block(0, {"type": "text", "text": ""}, "text_delta", "text", text)[:-1])

    def error(self, fails: Fails) -> bytes:
        return _event({"type": "error", **(fails.body if isinstance(fails.body, Mapping) else {})}, "error")

    def _start(self, tokens: int) -> bytes:
        message = {"id": "m-1", "type": "message", "role": "assistant", "model": self.name, "content": []}
        ends = {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": tokens, "output_tokens": 1}}
        return _event({"type": "message_start", "message": message | ends}, "message_start")

    def _block(self, index: int, start: Mapping[str, Any], kind: str, name: str, text: str) -> list[bytes]:
        begin = {"type": "content_block_start", "index": index, "content_block": start}
        deltas = [
            {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}}
            for piece in _pieces(text)
        ]
        stop = {"type": "content_block_stop", "index": index}
        return [_event(data, str(data["type"])) for data in (begin, *deltas, stop)]


def _pieces(text: str) -> list[str]:
    """A text in parts, as it is streamed."""
    return [text[start : start + 7] for start in range(0, len(text), 7)]
