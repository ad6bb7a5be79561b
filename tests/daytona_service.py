"""The API of Daytona and of the program in its sandboxes, as far as a backend uses them."""

from typing import Any

from aiohttp import WSCloseCode, web

from tests.rented import HttpService, Machine, Program

MARKS = {"stdout": b"\x01\x01\x01", "stderr": b"\x02\x02\x02"}


class DaytonaService(HttpService):
    """Answers as the service does: lines are marked with their stream, and a last one without its end gets one."""

    def routes(self) -> list[web.RouteDef]:
        session = "/toolbox/{name}/process/session"
        command = f"{session}/{{session}}/command/{{program}}"
        return [
            web.post("/api/sandbox", self.serve(self._create)),
            web.get("/api/sandbox/{name}", self.serve(self._get)),
            web.delete("/api/sandbox/{name}", self.serve(self._delete)),
            web.post("/api/sandbox/{name}/start", self.serve(self._start)),
            web.put("/api/sandbox/{name}/labels", self.serve(self._label)),
            web.post(session, self.serve(self._open_session)),
            web.delete(f"{session}/{{session}}", self.serve(self._delete_session)),
            web.post(f"{session}/{{session}}/exec", self.serve(self._begin)),
            web.post(f"{command}/input", self.serve(self._input)),
            web.get(f"{command}/logs", self.serve(self._logs)),
        ]

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = body["name"]
        self.machines[name] = Machine(self.base / name, **body)
        return web.json_response(self._described(name))

    async def _get(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return web.json_response(self._described(name)) if name in self.machines else _missing()

    async def _delete(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        described = self._described(name)
        self.machines.pop(name).stop()
        return web.json_response({**described, "state": "destroyed"})

    async def _start(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self.machines[name].running = True
        return web.json_response(self._described(name))

    async def _label(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.machines[request.match_info["name"]].facts["labels"] = body["labels"]
        return web.json_response(body)

    async def _open_session(self, request: web.Request) -> web.Response:
        machine = self.machines.get(request.match_info["name"])
        return web.Response(status=201) if machine is not None and machine.running else _missing()

    async def _delete_session(self, request: web.Request) -> web.Response:
        for name, program in self.machines[request.match_info["name"]].programs.items():
            if name.startswith(request.match_info["session"]):
                program.send_signal(9)
        return web.Response(status=204)

    async def _begin(self, request: web.Request) -> web.Response:
        body = await request.json()
        machine = self.machines[request.match_info["name"]]
        assert body["runAsync"] is True
        assert body["suppressInputEcho"] is True
        name = f"{request.match_info['session']}-1"
        await machine.begin("/bin/sh", "-c", body["command"], name=name)
        return web.json_response({"cmdId": name}, status=202)

    async def _input(self, request: web.Request) -> web.Response:
        body = await request.json()
        program = self._program(request)
        if program.exit_code is not None:
            return web.json_response({"message": "command has already completed", "statusCode": 410}, status=410)
        data = body["data"]
        await program.feed((data if data.endswith("\n") else f"{data}\n").encode())
        return web.Response(status=204)

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        program = self._program(request)
        assert request.query["follow"] == "true"
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        unfinished = dict.fromkeys(MARKS, b"")
        async for stream, data in program.follow():
            *lines, unfinished[stream] = (unfinished[stream] + data).split(b"\n")
            text = b"".join(MARKS[stream] + line + b"\n" for line in lines)
            for start in range(0, len(text), 1000):  # whatever is cut, also a mark
                await socket.send_bytes(text[start : start + 1000])
        for stream, line in unfinished.items():
            if line:
                await socket.send_bytes(MARKS[stream] + line + b"\n")
        await socket.close(code=WSCloseCode.OK)
        return socket

    def _program(self, request: web.Request) -> Program:
        return self.machines[request.match_info["name"]].programs[request.match_info["program"]]

    def _described(self, name: str) -> dict[str, Any]:
        machine = self.machines[name]
        described = {"id": name, "organizationId": "org", "name": name, "user": "daytona", "env": {}, "public": False}
        described |= {"networkBlockAll": False, "kvm": False, "target": "here", "cpu": 1, "gpu": 0, "memory": 1}
        described |= {"disk": 3, "toolboxProxyUrl": f"{self.address}/toolbox", "labels": machine.facts["labels"]}
        return {**described, "state": "started" if machine.running else "stopped"}


def _missing() -> web.Response:
    return web.json_response({"message": "there is no such sandbox", "statusCode": 404}, status=404)
