"""One HTTP request: its head, and its body as it arrives."""

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import unquote

from httptools import parse_url

from latecomer.service.http.upgrade_offers import Headers

if TYPE_CHECKING:
    from latecomer.service.http.connection import Connection
    from latecomer.service.http.keys import Key

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_MAX_BUFFERED = 1 << 16
"""Bytes of a body that may wait to be read; reading from the socket pauses beyond it."""


class Request:
    """A request whose head has arrived. The router adds the route and the bandit's name, the app the key."""

    __slots__ = ("_buffered", "_connection", "_parts", "_sent_continue", "_waiter", "bandit", "client", "event",
                 "headers", "is_answered", "is_broken", "is_whole", "keep_alive", "key", "method", "path", "query",
                 "route", "version")  # fmt: skip

    def __init__(
        self, connection: "Connection", *, method: str, version: str, target: bytes, headers: Headers, keep_alive: bool
    ) -> None:
        self._connection = connection
        self._parts: list[bytes] = []
        self._buffered = 0
        self._sent_continue = False
        self._waiter: asyncio.Future[None] | None = None
        self.method, self.version, self.headers, self.client = method, version, headers, connection.client
        path, self.query = _split(target)
        text = path.decode("latin-1")
        self.path = unquote(text) if "%" in text or not text.isascii() else text
        self.keep_alive = keep_alive
        self.route = ""
        """The path's template, once the router has found it."""
        self.bandit = ""
        """The bandit that the path names."""
        self.event = ""
        """The event that the path names."""
        self.key: Key | None = None
        """The key that was accepted; None where none is needed."""
        self.is_whole = False
        """The whole body has arrived."""
        self.is_broken = False
        """The rest of the body will never arrive."""
        self.is_answered = False

    def feed(self, part: bytes) -> None:
        """Add a part of the body."""
        if self.is_answered:
            return
        self._parts.append(part)
        self._buffered += len(part)
        if self._buffered > _MAX_BUFFERED:
            self._connection.pause_reading()
        self.wake()

    def wake(self) -> None:
        """Wake `wait`: a part has arrived, or none will arrive any more."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Wait until a part of the body can be taken, or none will arrive any more."""
        while not (self._parts or self.is_whole or self.is_broken):
            if not self._sent_continue and self._expects_continue:
                self._connection.write(_CONTINUE)
            self._sent_continue = True
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def take(self) -> bytes:
        """Return the bytes of the body that have arrived since the last call."""
        body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        if self._buffered > _MAX_BUFFERED:
            self._connection.resume_reading()
        self._buffered = 0
        return body

    @property
    def _expects_continue(self) -> bool:
        """Tell whether the client waits for `100 Continue` before it sends the body."""
        return self.version == "1.1" and any(
            name == b"expect" and value.lower() == b"100-continue" for name, value in self.headers
        )


def _split(target: bytes) -> tuple[bytes, bytes]:
    """Return the path and the query; a proxy may have sent the whole URL."""
    if b"://" in target and target[:1] != b"/":
        url = parse_url(target)
        return url.path or b"/", url.query or b""
    path, _, query = target.partition(b"?")
    return path, query
