"""A client of a few lines, independent of ours: the standard library, a connection for each request, no retries."""

import http.client
import json
from typing import Any

ROWS = {"actions": [[0.6, 0.0], [0.0, 0.8]]}
SPEC = {"dim": 2, "window": "7d"}


class PlainClient:
    """Sends requests to one server; `key` goes into the Authorization header."""

    def __init__(self, port: int) -> None:
        self.port = port

    def request(self, method: str, path: str, body: object = None, *, key: str | None = None) -> tuple[int, Any]:
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
        """Tell whether the server answers yet."""
        try:
            return self.request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def create(self, name: str, *, key: str | None = None) -> int:
        """Create a bandit of two dimensions; return the status."""
        return self.request("PUT", f"/v1/bandits/{name}", SPEC, key=key)[0]

    def decide(self, name: str, *, request_id: str | None = None) -> tuple[int, Any]:
        """Ask for a decision."""
        return self.request(
            "POST", f"/v1/bandits/{name}/decisions", ROWS | ({"request_id": request_id} if request_id else {})
        )
