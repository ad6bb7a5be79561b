"""The API of Modal and of the program in its sandboxes, as far as a backend uses them: gRPC on loopback."""

# ruff: noqa: N802 - the service names its calls

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grpclib import GRPCError, Status
from grpclib.events import RecvRequest, listen
from grpclib.server import Server, Stream
from modal_proto import api_pb2 as api
from modal_proto import task_command_router_pb2 as router
from modal_proto.api_grpc import ModalClientBase
from modal_proto.task_command_router_grpc import TaskCommandRouterBase

from tests.rented import Loop, Machine, Program

# A JSON web token that says nothing but when it ends.
TOKEN = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b"{}", b'{"exp": 9999999999}', b""))


async def _unknown(self: object, stream: Stream[Any, Any]) -> None:
    raise GRPCError(Status.UNIMPLEMENTED, "the tests' service does not know this call")


def _without_gaps(base: type[Any]) -> Any:
    """A servicer of which every call that is not written out is refused."""
    return type(f"Any{base.__name__}", (base,), dict.fromkeys(base.__abstractmethods__, _unknown))


class ModalService(_without_gaps(ModalClientBase)):  # type: ignore[misc]
    """Answers as the service does; ``refusal`` is what it says to everything while it is set."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.machines: dict[str, Machine] = {}
        self.refusal: GRPCError | None = None
        self.tokens: set[tuple[str, str]] = set()
        self.asked: list[str] = []
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def look(self, event: RecvRequest) -> None:
        self.asked.append(event.method_name.rpartition("/")[2])
        if "x-modal-token-id" in event.metadata:
            self.tokens.add((str(event.metadata["x-modal-token-id"]), str(event.metadata["x-modal-token-secret"])))
        if self.refusal is not None:
            raise self.refusal

    async def ClientHello(self, stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        await stream.send_message(api.ClientHelloResponse())

    async def AppGetOrCreate(self, stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        await stream.send_message(api.AppGetOrCreateResponse(app_id="ap-1"))

    async def EnvironmentGetOrCreate(self, stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        settings = api.EnvironmentSettings(image_builder_version="2025.06", webhook_suffix="")
        metadata = api.EnvironmentMetadata(name="main", settings=settings)
        await stream.send_message(api.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata))

    async def ImageGetOrCreate(self, stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        done = api.GenericResult(status=api.GenericResult.GENERIC_STATUS_SUCCESS)
        metadata = api.ImageMetadata(image_builder_version="2025.06")
        await stream.send_message(api.ImageGetOrCreateResponse(image_id="im-1", result=done, metadata=metadata))

    async def SandboxCreateV2(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        name = request.definition.name
        tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        self.machines[f"sb-{name}"] = Machine(self.base / name, tags=tags, definition=request.definition)
        made = api.SandboxCreateV2Response(sandbox_id=f"sb-{name}", task_id=f"ta-sb-{name}")
        await stream.send_message(made)

    async def SandboxGetFromNameV2(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        name = f"sb-{request.sandbox_name}"
        if name not in self.machines or not self.machines[name].running:
            raise GRPCError(Status.NOT_FOUND, "there is no such sandbox")
        await stream.send_message(api.SandboxGetFromNameResponse(sandbox_id=name))

    async def SandboxWaitV2(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        machine = self._machine(request.sandbox_id)
        await stream.send_message(api.SandboxWaitResponse(result=None if machine.running else _terminated()))

    async def SandboxTerminateV2(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        self._machine(request.sandbox_id).stop()
        await stream.send_message(api.SandboxTerminateResponse())

    async def SandboxTagsGetV2(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        tags = self._machine(request.sandbox_id).facts["tags"]
        written = [api.SandboxTag(tag_name=name, tag_value=value) for name, value in tags.items()]
        await stream.send_message(api.SandboxTagsGetResponse(tags=written))

    async def SandboxTagsSetV2(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        tags = {tag.tag_name: tag.tag_value for tag in request.tags}
        self._machine(request.sandbox_id).facts["tags"] = tags
        await stream.send_message(api.google_dot_protobuf_dot_empty__pb2.Empty())

    async def SandboxGetFromName(self, stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        raise GRPCError(Status.NOT_FOUND, "there is no such sandbox of the older kind either")

    async def SandboxGetTaskIdV2(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        self._machine(request.sandbox_id)
        await stream.send_message(api.SandboxGetTaskIdResponse(task_id=f"ta-{request.sandbox_id}"))

    async def SandboxGetCommandRouterAccess(self, stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        await stream.send_message(api.SandboxGetCommandRouterAccessResponse(url=self.address, jwt=TOKEN))

    async def AuthTokenGet(self, stream: Stream[Any, Any]) -> None:
        await stream.recv_message()
        await stream.send_message(api.AuthTokenGetResponse(token=TOKEN))

    def _machine(self, name: str) -> Machine:
        if name not in self.machines:
            raise GRPCError(Status.NOT_FOUND, "there is no such sandbox")
        return self.machines[name]


class RouterService(_without_gaps(TaskCommandRouterBase)):  # type: ignore[misc]
    """What the library speaks with once it knows where a sandbox is."""

    def __init__(self, service: ModalService) -> None:
        self._service = service

    async def TaskExecStart(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        machine = self._service.machines.get(request.task_id.removeprefix("ta-"))
        if machine is None or not machine.running:
            raise GRPCError(Status.NOT_FOUND, "the sandbox has ended")
        await machine.begin(*request.command_args, name=request.exec_id)
        await stream.send_message(router.TaskExecStartResponse())

    async def TaskExecStdioRead(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        wanted = "stdout" if request.file_descriptor == router.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT else "stderr"
        async for name, data in self._followed(request):
            if name == wanted:
                await stream.send_message(router.TaskExecStdioReadResponse(data=data))

    async def TaskExecStdinWrite(self, stream: Stream[Any, Any]) -> None:
        request = await stream.recv_message()
        program = self._program(request)
        if request.data:
            await program.feed(request.data)
        if request.eof:
            program.end_input()
        await stream.send_message(router.TaskExecStdinWriteResponse())

    def _program(self, request: Any) -> Program:
        return self._service.machines[request.task_id.removeprefix("ta-")].programs[request.exec_id]

    def _followed(self, request: Any) -> AsyncIterator[tuple[str, bytes]]:
        return self._program(request).follow()


@contextmanager
def opened_modal(base: Path) -> Iterator[ModalService]:
    """Have the service answer on loopback as long as the block lasts."""
    loop = Loop()
    service = ModalService(base)

    async def start() -> Server:
        server = Server([service, RouterService(service)])
        listen(server, RecvRequest, service.look)
        await server.start("127.0.0.1", 0)
        assert server._server is not None
        service.port = server._server.sockets[0].getsockname()[1]
        return server

    async def stop() -> None:
        for machine in service.machines.values():
            machine.stop()
        server.close()
        await server.wait_closed()

    server = loop(start())
    try:
        yield service
    finally:
        loop(stop())
        loop.close()


def _terminated() -> Any:
    return api.GenericResult(status=api.GenericResult.GENERIC_STATUS_TERMINATED)
