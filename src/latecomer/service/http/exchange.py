"""One request and its answer, as ASGI's `scope`, `receive` and `send`."""

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from httptools import parse_url

from latecomer.service.http.heads import Headers

if TYPE_CHECKING:
    from latecomer.service.http.connection import Connection

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_ASGI = {"version": "3.0", "spec_version": "2.3"}
_BODILESS = frozenset({204, 304})
_HELD = 1 << 16
"""Bytes of a body that may wait to be read; then the client waits."""


class Exchange:
    """A request whose head has arrived, its body as it arrives, and the answer to it."""

    __slots__ = ("_asked", "_connection", "_fields", "_held", "_out", "_parts", "_status", "_waiter", "answered",
                 "broken", "keep_alive", "method", "scope", "whole")  # fmt: skip

    def __init__(
        self, connection: "Connection", *, method: str, version: str, target: bytes, headers: Headers, keep_alive: bool
    ) -> None:
        self._connection = connection
        self._parts: list[bytes] = []
        self._out: list[bytes] = []
        self._held = 0
        self._asked = False
        self._waiter: asyncio.Future[None] | None = None
        self.method, self.keep_alive = method, keep_alive
        self.whole = False
        """The body has arrived."""
        self.broken = False
        """The rest of the body will never arrive."""
        self.answered = False
        path, query = _split(target)
        text = path.decode("latin-1")
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "scheme": "http",
            "server": connection.here,
            "client": connection.client,
            "method": method,
            "root_path": "",
            "path": unquote(text) if "%" in text or not text.isascii() else text,
            "raw_path": path,
            "query_string": query,
            "headers": headers,
        }

    def feed(self, part: bytes) -> None:
        """Take a part of the body."""
        if self.answered:
            return
        self._parts.append(part)
        self._held += len(part)
        if self._held > _HELD:
            self._connection.pause_reading()
        self.wake()

    def wake(self) -> None:
        """Tell `receive` that something has changed."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def receive(self) -> dict[str, Any]:
        """Return what of the body has arrived since the last call, and wait for more where nothing has."""
        while not (self._parts or self.whole or self.broken):
            if not self._asked and self._is_expectant:
                self._connection.write(_CONTINUE)
            self._asked = True
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self.broken and not self._parts:
            return {"type": "http.disconnect"}
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        if self._held > _HELD:
            self._connection.resume_reading()
        self._held = 0
        return {"type": "http.request", "body": body, "more_body": not self.whole}

    @property
    def _is_expectant(self) -> bool:
        """Tell whether the client waits for a word before it sends the body."""
        if self.scope["http_version"] != "1.1":
            return False
        return any(name == b"expect" and value.lower() == b"100-continue" for name, value in self.scope["headers"])

    async def send(self, message: dict[str, Any]) -> None:
        """Take a part of the answer; with the last one it is written, in one piece."""
        if message["type"] == "http.response.start":
            self._status, self._fields = message["status"], message["headers"]
            return
        body = message.get("body", b"")
        if message.get("more_body", False):
            self._out.append(body)
        else:
            self.answer(self._status, self._fields, b"".join((*self._out, body)) if self._out else body)

    def answer(self, status: int, fields: Headers, body: bytes) -> None:
        """Write the answer, once."""
        if self.answered:
            return
        self.answered = True
        self.keep_alive = self.keep_alive and self.whole and not self._connection.is_closing
        lines = [_STATUS_LINES[status], self._connection.date_line]
        lengthless = status not in _BODILESS
        for name, value in fields:
            lines.append(b"%b: %b\r\n" % (name, value))
            if name == b"content-length":
                lengthless = False
        if lengthless:
            lines.append(b"content-length: %d\r\n" % len(body))
        lines.append(b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n")
        if self.method != "HEAD" and status not in _BODILESS:
            lines.append(body)
        self._connection.write(b"".join(lines))
        self._connection.end(self)


def _split(target: bytes) -> tuple[bytes, bytes]:
    """The path and the query; a proxy may have sent the whole address."""
    if b"://" in target and target[:1] != b"/":
        url = parse_url(target)
        return url.path or b"/", url.query or b""
    path, _, query = target.partition(b"?")
    return path, query
