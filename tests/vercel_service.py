"""The Sandbox API of Vercel, as far as a backend uses it."""

import base64
import json
from typing import Any

from aiohttp import web

from tests.rented import HttpService, Machine, Program


class VercelService(HttpService):
    """Answers as the service does, in its own field names."""

    def routes(self) -> list[web.RouteDef]:
        session = "/v2/sandboxes/sessions/{name}"
        return [
            web.post("/v3/sandboxes", self.serve(self._create)),
            web.get("/v2/sandboxes/{name}", self.serve(self._get)),
            web.patch("/v2/sandboxes/{name}", self.serve(self._update)),
            web.delete("/v2/sandboxes/{name}", self.serve(self._destroy)),
            web.get(session, self.serve(self._session)),
            web.post(f"{session}/cmd", self.serve(self._begin)),
            web.get(f"{session}/cmd/{{program}}/logs", self.serve(self._logs)),
            web.post(f"{session}/cmd/{{program}}/stdin", self.serve(self._stdin)),
            web.post(f"{session}/cmd/{{program}}/kill", self.serve(self._kill)),
        ]

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = body["name"]
        self.machines[name] = Machine(self.base / name, tags=body["tags"], networkPolicy=body["networkPolicy"])
        return web.json_response(self._described(name))

    async def _get(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.machines:
            return _missing()
        if request.query.get("resume") == "true":
            self.machines[name].running = True
        return web.json_response(self._described(name))

    async def _update(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = request.match_info["name"]
        self.machines[name].facts.update(body)
        return web.json_response(self._described(name))

    async def _destroy(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.machines:
            return _missing()
        described = self._described(name)
        self.machines.pop(name).stop()
        return web.json_response(described)

    async def _session(self, request: web.Request) -> web.Response:
        name = request.match_info["name"].removeprefix("sbx_")
        if name not in self.machines:
            return _missing()
        return web.json_response({"session": self._described(name)["session"], "routes": []})

    async def _begin(self, request: web.Request) -> web.Response:
        body = await request.json()
        machine = self.machines.get(request.match_info["name"].removeprefix("sbx_"))
        if machine is None:
            return _missing()
        if not machine.running:
            return web.json_response({"error": {"code": "sandbox_stopped", "message": "stopped"}}, status=410)
        name, program = await machine.begin(body["command"], *body["args"])
        return web.json_response(_described_program(request, name, program))

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/x-ndjson"})
        await response.prepare(request)
        async for stream, data in self._program(request).follow():
            line = json.dumps({"stream": stream, "data": data.decode("utf-8", "replace")})
            await response.write(line.encode() + b"\n")
        return response

    async def _stdin(self, request: web.Request) -> web.Response:
        body = await request.json()
        program = self._program(request)
        if program.exit_code is not None:
            return web.json_response({"error": {"code": "command_stdin_unavailable", "message": "ended"}}, status=400)
        data = base64.b64decode(body.get("data", ""))
        await program.feed(data)
        if body.get("close"):
            program.end_input()
        return web.json_response({"bytesWritten": body.get("offset", 0) + len(data)})

    async def _kill(self, request: web.Request) -> web.Response:
        body = await request.json()
        program = self._program(request)
        program.send_signal(body["signal"])
        return web.json_response(_described_program(request, request.match_info["program"], program))

    def _program(self, request: web.Request) -> Program:
        machine = self.machines[request.match_info["name"].removeprefix("sbx_")]
        return machine.programs[request.match_info["program"]]

    def _described(self, name: str) -> dict[str, Any]:
        machine = self.machines[name]
        status = "running" if machine.running else "stopped"
        session = {"id": f"sbx_{name}", "sourceSandboxName": name, "projectId": "prj", "status": status}
        sandbox = {"name": name, "currentSessionId": session["id"], "projectId": "prj", "status": status}
        return {"sandbox": {**sandbox, **machine.facts}, "session": session, "routes": []}


def _described_program(request: web.Request, name: str, program: Program) -> dict[str, Any]:
    facts = {"id": name, "name": "/bin/sh", "args": [], "cwd": "/", "startedAt": 1, "exitCode": program.exit_code}
    return {"command": {**facts, "sessionId": request.match_info["name"]}}


def _missing() -> web.Response:
    return web.json_response({"error": {"code": "not_found", "message": "there is no such sandbox"}}, status=404)
