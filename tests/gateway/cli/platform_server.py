"""Chat platforms on loopback, as far as a token's check goes: they know one token each, and refuse every other."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

TELEGRAM = "123456:AAHgood-token_of-the-bot"
SLACK_BOT = "xoxb-good"
SLACK_APP = "xapp-good"


@dataclass
class Platforms:
    """Where they are, and what they were asked."""

    address: str = ""
    asked: list[str] = field(default_factory=list)
    scopes: str | None = None

    def answer(self, path: str, token: str) -> dict[str, object]:
        self.asked.append(path)
        match path:
            case "/auth.test" if token == SLACK_BOT:
                return {"ok": True, "user": "takeback", "team": "Some Team"}
            case "/apps.connections.open" if token == SLACK_APP:
                return {"ok": True, "url": "wss://127.0.0.1/nowhere"}
            case "/auth.test" | "/apps.connections.open":
                return {"ok": False, "error": "invalid_auth"}
            case _ if path == f"/bot{TELEGRAM}/getMe":
                return {"ok": True, "result": {"id": 123456, "is_bot": True, "username": "some_bot"}}
        return {"ok": False, "error_code": 401, "description": "Unauthorized"}


@contextmanager
def platforms_on_loopback() -> Iterator[Platforms]:
    platforms = Platforms()

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            said = json.dumps(platforms.answer(self.path, token)).encode()
            self.send_response(401 if b'"error_code"' in said else 200)
            self.send_header("Content-Length", str(len(said)))
            if platforms.scopes is not None:
                self.send_header("X-OAuth-Scopes", platforms.scopes)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        platforms.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield platforms
        finally:
            server.shutdown()
            thread.join()
