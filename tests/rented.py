"""A service that rents out sandboxes, on loopback: what its programs do is done by real processes of this machine."""

import asyncio
import itertools
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

T = TypeVar("T")
S = TypeVar("S", bound="HttpService")


class Program:
    """A process of a sandbox, and all that it wrote, in order; from the beginning for everybody who asks."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.written: list[tuple[str, bytes]] = []
        self.exit_code: int | None = None
        self._changed = asyncio.Condition()
        self._tasks = [
            asyncio.ensure_future(self._take("stdout", process.stdout)),
            asyncio.ensure_future(self._take("stderr", process.stderr)),
        ]
        self._end = asyncio.ensure_future(self._await_end())

    async def feed(self, data: bytes) -> None:
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(data)
        with suppress(ConnectionError):
            await stdin.drain()

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    async def follow(self) -> AsyncIterator[tuple[str, bytes]]:
        """Yield what it writes, and end when it and whoever has its streams has ended."""
        for at in itertools.count():
            async with self._changed:
                while len(self.written) <= at and self.exit_code is None:
                    await self._changed.wait()
            if at == len(self.written):
                return
            yield self.written[at]

    async def wait(self) -> int:
        async with self._changed:
            await self._changed.wait_for(lambda: self.exit_code is not None)
        assert self.exit_code is not None
        return self.exit_code

    async def _take(self, name: str, stream: asyncio.StreamReader | None) -> None:
        assert stream is not None
        while data := await stream.read(65536):
            async with self._changed:
                self.written.append((name, data))
                self._changed.notify_all()

    async def _await_end(self) -> None:
        code = await self.process.wait()
        await asyncio.gather(*self._tasks)
        async with self._changed:
            self.exit_code = code if code >= 0 else 128 - code
            self._changed.notify_all()


class Machine:
    """What a sandbox is here: a directory, and the programs that were started in it."""

    def __init__(self, directory: Path, **facts: Any) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.facts = facts
        self.programs: dict[str, Program] = {}
        self.running = True

    async def begin(self, *arguments: str, name: str = "") -> tuple[str, Program]:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.directory,
            env={"PATH": os.environ["PATH"], "HOME": str(self.directory)},
            start_new_session=True,
        )
        name = name or f"cmd_{len(self.programs)}"
        self.programs[name] = Program(process)
        return name, self.programs[name]

    def stop(self) -> None:
        self.running = False
        for program in self.programs.values():
            program.send_signal(signal.SIGKILL)


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="service", daemon=True)
        self.thread.start()

    def __call__(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def close(self) -> None:
        self(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(30)
        self.loop.close()

    async def _cancel_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class HttpService:
    """Machines behind HTTP; ``refusal`` is the status and body of every answer while it is set."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.machines: dict[str, Machine] = {}
        self.refusal: tuple[int, Any] | None = None
        self.tokens: set[str] = set()
        self.asked: list[tuple[str, str, Any]] = []
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def routes(self) -> list[web.RouteDef]:
        raise AssertionError

    def serve(self, handler: Callable[..., Any]) -> Callable[[web.Request], Any]:
        """Call a handler once the request is written down."""

        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.json() if request.can_read_body else None
            self.asked.append((request.method, request.path, body))
            self.tokens.add(request.headers.get("Authorization", ""))
            if self.refusal is not None:
                return web.json_response(self.refusal[1], status=self.refusal[0])
            return await handler(request)

        return handle


@contextmanager
def opened(service: S) -> Iterator[S]:
    """Have a service answer on loopback as long as the block lasts."""
    loop = Loop()
    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.add_routes(service.routes())
    runner = web.AppRunner(application, shutdown_timeout=1)

    async def start() -> None:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        service.port = runner.addresses[0][1]

    loop(start())
    try:
        yield service
    finally:
        for machine in service.machines.values():
            loop.loop.call_soon_threadsafe(machine.stop)
        loop(runner.cleanup())
        loop.close()
