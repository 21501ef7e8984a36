"""One client's connection: bytes become requests by llhttp, which are answered one after the other."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from latecomer.service.http.errors import HTTPError, encode_error
from latecomer.service.http.heads import Headers, decline_offers, write_head
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response

if TYPE_CHECKING:
    from latecomer.service.http.listener import Listener

Answering = Coroutine[Any, Any, Response]
App = Callable[[Request], Answering]

_LONGEST_HEAD = 1 << 16
_PIECE = 1 << 13
"""Bytes that are parsed at once. Requests that were sent without waiting for answers are parsed so much ahead."""


class Connection(asyncio.Protocol):
    """One client's connection, from when it is accepted until it is closed."""

    def __init__(self, listener: "Listener", app: App, client: tuple[str, int]) -> None:
        self._listener, self._app = listener, app
        self.client = client
        self._loop = asyncio.get_running_loop()
        self._parser = HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._request: Request | None = None
        """The request that is being answered."""
        self._parsed: Request | None = None
        """The request whose body is arriving."""
        self._ahead: deque[Request] = deque()
        """Requests that wait for the answers of earlier ones."""
        self._unparsed = b""
        self._target, self._headers = b"", Headers()
        self._unsettled = 0
        """Bytes since the last thing that was whole: a head, a part of a body, a request."""
        self._deaf = False
        """Nothing else that arrives is looked at."""
        self._eof = False
        """Nothing else arrives."""
        self._refusal: HTTPError | None = None
        self._writable, self._ended = True, False
        self._task: asyncio.Task[None] | None = None
        self._paused = False

    # ---- the transport ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)  # so that `pause_writing` says that something is not sent
        self._listener.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        """End: whoever waits for a body is told."""
        self._ended = self._deaf = True
        self._transport = None
        del self._parser  # which holds this connection
        self._listener.remove(self)
        for request in (self._request, self._parsed):
            if request is not None:
                request.is_broken = True
                request.wake()

    def eof_received(self) -> bool:
        """Answer what has arrived whole, though nothing else will come."""
        self._eof = True
        if self._parsed is not None:
            self._parsed.is_broken = True
            self._parsed.wake()
        return not self._ended and (self._request is not None or bool(self._ahead) or bool(self._unparsed))

    def pause_writing(self) -> None:
        """The client does not read: what could not be sent waits, though not for long."""
        self._writable = False
        self._listener.await_close(self)

    def resume_writing(self) -> None:
        """Everything is sent."""
        self._writable = True
        if not self._ended:
            self._listener.forgive(self)
            if self._request is None:
                self._go_on()

    def data_received(self, data: bytes) -> None:
        """Parse it, unless an earlier request is yet to be answered."""
        if self._deaf:
            return
        if self._unparsed or self._is_ahead:
            self._unparsed += data
            self.pause_reading()
        elif len(data) <= _PIECE:
            self._parse(data)
        else:
            self._feed(data)

    @property
    def _is_ahead(self) -> bool:
        """Tell whether an earlier request is yet to be answered or sent: the next one's turn has not come."""
        return self._parsed is None if self._request is not None else not self._writable

    def _feed(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            if self._is_ahead:
                self._unparsed = data[start:]
                self.pause_reading()
                return
            self._parse(data[start : start + _PIECE])
            if self._deaf:
                return

    def _parse(self, piece: bytes) -> None:
        self._unsettled += len(piece)
        while piece:
            try:
                self._parser.feed_data(piece)
                piece = b""
            except HttpParserUpgrade as upgrade:
                if self._parsed is not None or self._parser.get_method() == b"CONNECT":  # the last that is understood
                    self._deaf = True
                    return
                piece = self._decline_upgrade() + piece[upgrade.args[0] :]
            except HttpParserError as error:
                self._refuse(HTTPError(400, f"the request must be HTTP/1.1: {error}"))
                return
        if self._unsettled > _LONGEST_HEAD:
            self._refuse(HTTPError(431, f"the head of a request must have at most {_LONGEST_HEAD} bytes"))

    def _decline_upgrade(self) -> bytes:
        """Return the head of the request without its offer to speak something else, for a parser of its own."""
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        self._parser = HttpRequestParser(self)
        return write_head(method, self._target, version, decline_offers(self._headers))

    def _refuse(self, refusal: HTTPError) -> None:
        """Answer what came before, then this; nothing else is read."""
        self._deaf, self._refusal = True, refusal
        if self._parsed is not None:
            self._parsed.is_broken = True
            self._parsed.wake()
        elif self._request is None:
            self._go_on()

    # ---- the parser ----

    def on_message_begin(self) -> None:
        """A request begins."""
        self._target, self._headers = b"", []

    def on_url(self, part: bytes) -> None:
        """A part of its target."""
        self._target = self._target + part if self._target else part

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; what comes after a body is none."""
        if self._parsed is None:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Its head is whole: it can be begun with, unless it is too long, or is to be parsed again without an offer."""
        method, version = self._parser.get_method().decode("ascii"), self._parser.get_http_version()
        if self._unsettled > _LONGEST_HEAD and self._head_size() > _LONGEST_HEAD:
            return
        if self._parser.should_upgrade() and method != "CONNECT":
            return
        self._unsettled = 0
        self._parsed = request = Request(
            self,
            method=method,
            version=version,
            target=self._target,
            headers=self._headers,
            keep_alive=version == "1.1" and self._parser.should_keep_alive() and not self._parser.should_upgrade(),
        )
        if self._request is None and self._writable:
            self._begin(request)
        else:
            self._ahead.append(request)

    def _head_size(self) -> int:
        return len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._headers)

    def on_body(self, part: bytes) -> None:
        """A part of its body."""
        if self._parsed is not None:
            self._unsettled = 0
            self._parsed.feed(part)

    def on_message_complete(self) -> None:
        """It is whole."""
        if self._parsed is not None:
            self._unsettled = 0
            self._parsed.is_whole = True
            self._parsed.wake()
            self._parsed = None

    # ---- answers ----

    def _begin(self, request: Request) -> None:
        self._listener.set_busy(self)
        self._request = request
        self._task = self._loop.create_task(self._run(request, self._app(request)))

    async def _run(self, request: Request, answering: Answering) -> None:
        try:
            response = await answering
        except Exception as error:  # noqa: BLE001 - the application answers its errors: this is a fault
            self._listener.report_fault(error)
            fault = HTTPError(500, "this should not have happened; the log says more")
            response = Response(500, encode_error(fault))
        self._respond(request, response)

    def _respond(self, request: Request, response: Response) -> None:
        """Write the answer; then close, or go on to the next request."""
        request.is_answered = True
        keep_alive = request.keep_alive and request.is_whole and not self.is_closing
        self.write(
            response.to_bytes(
                date_line=self._listener.date_line, keep_alive=keep_alive, head_only=request.method == "HEAD"
            )
        )
        if self._request is request:
            self._request = None
        if not keep_alive:
            self.close(unread=not (request.is_whole or self._eof or self._listener.is_closing))
        elif self._writable:
            self._go_on()

    def _go_on(self) -> None:
        """Begin the next request, where there is one."""
        if self._ended:
            return
        if self._ahead:
            self._begin(self._ahead.popleft())
        elif self._refusal is not None:
            unparsed = Request(self, method="", version="1.1", target=b"", headers=[], keep_alive=False)
            self._respond(unparsed, Response(self._refusal.status, encode_error(self._refusal)))
        elif self._unparsed:
            data, self._unparsed = self._unparsed, b""
            self._feed(data)
            if not self._is_ahead:
                self.resume_reading()
            if self._request is None:
                self._wait()
        else:
            self._wait()

    def _wait(self) -> None:
        """Wait for a request, where there can be one."""
        if self._deaf or self._eof or self.is_closing:
            self.close()
        else:
            self._listener.set_idle(self)
            self.resume_reading()

    # ---- what others do to it ----

    @property
    def is_closing(self) -> bool:
        """The next answer is the last."""
        return self._ended or self._listener.is_closing

    def write(self, data: bytes) -> None:
        """Send, or keep until it can be sent."""
        if self._transport is not None and not self._ended:
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Let the client wait."""
        if self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on."""
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def close(self, *, unread: bool = False) -> None:
        """Close once everything is sent. `unread`: hear the client out first, or it would miss its answer."""
        if self._transport is None or self._ended:
            return
        self._ended = self._deaf = True
        self._listener.await_close(self)
        if unread and self._transport.can_write_eof():
            self._transport.write_eof()
            self.resume_reading()
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()
