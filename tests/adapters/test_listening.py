"""What a platform delivers comes in at one path, for as long as somebody listens."""

import socket

import anyio
import pytest
from aiohttp import ClientConnectionError, ClientSession, web

from adapters.contract import ConnectionFailed
from adapters.listening import Door, listening


@pytest.fixture
def door() -> Door:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return Door("Paper", "127.0.0.1", free.getsockname()[1], "/in", "paper.port")


async def echo(request: web.Request) -> web.Response:
    return web.Response(body=await request.read())


async def test_only_posts_to_the_path_are_delivered(door):
    url = f"http://127.0.0.1:{door.port}"
    async with listening(door, echo), ClientSession() as session:
        async with session.post(f"{url}/in", data=b"hello") as answer:
            answered = answer.status, await answer.read()
        async with session.post(f"{url}/elsewhere", data=b"hello") as answer:
            elsewhere = answer.status
        async with session.get(f"{url}/in") as answer:
            got = answer.status

    assert (answered, elsewhere, got) == ((200, b"hello"), 404, 405)
    async with ClientSession() as session:
        with pytest.raises(ClientConnectionError):
            await session.post(f"{url}/in", data=b"too late")


async def test_a_delivery_that_is_being_handed_on_is_still_answered_when_the_gateway_stops(door):
    came, go = anyio.Event(), anyio.Event()
    answered = []

    async def slowly(request: web.Request) -> web.Response:
        came.set()
        await go.wait()
        return web.Response(text="stored")

    async def post() -> None:
        async with ClientSession() as session, session.post(f"http://127.0.0.1:{door.port}/in") as answer:
            answered.append(await answer.text())

    async with anyio.create_task_group() as tasks, listening(door, slowly):
        tasks.start_soon(post)
        await came.wait()
        tasks.start_soon(_later, go)

    assert answered == ["stored"]


async def _later(go: anyio.Event) -> None:
    await anyio.wait_all_tasks_blocked()
    go.set()


async def test_a_port_that_is_taken_is_said(door):
    with socket.socket() as taken:
        taken.bind((door.host, door.port))
        taken.listen()
        with pytest.raises(ConnectionFailed) as caught:
            async with listening(door, echo):
                pass

    assert caught.value.reason.startswith(f"cannot listen on 127.0.0.1:{door.port} for Paper's deliveries (")
    assert caught.value.reason.endswith("; see paper.port")
    assert not caught.value.permanent
