"""An independent client of a few lines: the standard library alone, one connection a request, no retries."""

import http.client
import json
import time
from collections.abc import Callable
from typing import Any

ROWS = {"actions": [[0.6, 0.0], [0.0, 0.8]]}
SPEC = {"dim": 2, "window": "7d"}


class PlainClient:
    """Asks one server; `key` goes into the Authorization header."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, method: str, path: str, body: object = None, *, key: str | None = None) -> tuple[int, Any]:
        """Return the status and the body, read as JSON where it is JSON."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text.startswith((b"{", b"[")) else text.decode()

    def is_answered(self) -> bool:
        """Tell whether anybody answers yet."""
        try:
            return self.ask("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def create(self, name: str, *, key: str | None = None) -> int:
        """Create a bandit of two dimensions; return the status."""
        return self.ask("PUT", f"/v1/bandits/{name}", SPEC, key=key)[0]

    def decide(self, name: str, *, request_id: str | None = None) -> tuple[int, Any]:
        """Ask for a decision."""
        return self.ask(
            "POST", f"/v1/bandits/{name}/decisions", ROWS | ({"request_id": request_id} if request_id else {})
        )


def eventually(holds: Callable[[], bool], *, seconds: float = 30.0) -> bool:
    """Wait until something holds, but not for ever."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return holds()
