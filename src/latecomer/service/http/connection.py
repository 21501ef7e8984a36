"""One client's connection: bytes become requests by llhttp, which are answered one after the other."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from latecomer.service.http.errors import HTTPError, encode_error
from latecomer.service.http.request import Request
from latecomer.service.http.response import Response
from latecomer.service.http.upgrade_offers import Headers, decline_offers, head_size, write_head

if TYPE_CHECKING:
    from latecomer.service.http.listener import Listener

Answering = Coroutine[Any, Any, Response]
App = Callable[[Request], Answering]

_MAX_HEAD = 1 << 16
_PIECE = 1 << 13
"""Bytes that are parsed at once: pipelined requests are parsed so far ahead."""


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
        self._head_bytes = 0
        """Bytes since the last complete head, part of a body, or request."""
        self._ignores_input = False
        """Bytes that arrive are discarded."""
        self._eof = False
        """The client has sent its last byte."""
        self._final_error: HTTPError | None = None
        """The error that is answered last, before the connection is closed."""
        self._writable, self._ended = True, False
        self._task: asyncio.Task[None] | None = None
        self._paused = False

    # ---- the transport ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register with the listener."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)  # so that `pause_writing` means that something is unsent
        self._listener.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        """Deregister, and wake whoever waits for a body."""
        self._ended = self._ignores_input = True
        self._transport = None
        del self._parser  # it refers to this connection
        self._listener.remove(self)
        for request in (self._request, self._parsed):
            if request is not None:
                request.is_broken = True
                request.wake()

    def eof_received(self) -> bool:
        """Keep the connection open as long as complete requests are to be answered."""
        self._eof = True
        if self._parsed is not None:
            self._parsed.is_broken = True
            self._parsed.wake()
        return not self._ended and (self._request is not None or bool(self._ahead) or bool(self._unparsed))

    def pause_writing(self) -> None:
        """Start the write timeout: the client does not read, and something is unsent."""
        self._writable = False
        self._listener.start_closing(self)

    def resume_writing(self) -> None:
        """Stop the write timeout: everything is sent."""
        self._writable = True
        if not self._ended:
            self._listener.stop_closing(self)
            if self._request is None:
                self._begin_next()

    def data_received(self, data: bytes) -> None:
        """Parse the bytes, or keep them while an earlier request is not yet answered."""
        if self._ignores_input:
            return
        if self._unparsed or self._is_ahead:
            self._unparsed += data
            self.pause_reading()
        elif len(data) <= _PIECE:
            self._parse(data)
        else:
            self._parse_pieces(data)

    @property
    def _is_ahead(self) -> bool:
        """Tell whether an earlier request is not yet answered and sent, so that the next one has to wait."""
        return self._parsed is None if self._request is not None else not self._writable

    def _parse_pieces(self, data: bytes) -> None:
        for start in range(0, len(data), _PIECE):
            if self._is_ahead:
                self._unparsed = data[start:]
                self.pause_reading()
                return
            self._parse(data[start : start + _PIECE])
            if self._ignores_input:
                return

    def _parse(self, piece: bytes) -> None:
        self._head_bytes += len(piece)
        while piece:
            try:
                self._parser.feed_data(piece)
                piece = b""
            except HttpParserUpgrade as upgrade:
                if self._parsed is not None or self._parser.get_method() == b"CONNECT":  # nothing after it is HTTP
                    self._ignores_input = True
                    return
                piece = self._decline_upgrade() + piece[upgrade.args[0] :]
            except HttpParserError as error:
                self._fail(HTTPError(400, f"the request must be HTTP/1.1: {error}"))
                return
        if self._head_bytes > _MAX_HEAD:
            self._fail(HTTPError(431, f"the head of a request must have at most {_MAX_HEAD} bytes"))

    def _decline_upgrade(self) -> bytes:
        """Return the head without its offer of another protocol, for a new parser."""
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        self._parser = HttpRequestParser(self)
        return write_head(method, self._target, version, decline_offers(self._headers))

    def _fail(self, error: HTTPError) -> None:
        """Answer earlier requests, then with this error; discard what else arrives."""
        self._ignores_input, self._final_error = True, error
        if self._parsed is not None:
            self._parsed.is_broken = True
            self._parsed.wake()
        elif self._request is None:
            self._begin_next()

    # ---- the parser ----

    def on_message_begin(self) -> None:
        """Start a request."""
        self._target, self._headers = b"", []

    def on_url(self, part: bytes) -> None:
        """Add a part of the request's target."""
        self._target = self._target + part if self._target else part

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers after a body are dropped."""
        if self._parsed is None:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Make the request, unless its head is too long, or offers another protocol and is to be parsed again."""
        method, version = self._parser.get_method().decode("ascii"), self._parser.get_http_version()
        if self._head_bytes > _MAX_HEAD and head_size(self._target, self._headers) > _MAX_HEAD:
            return
        if self._parser.should_upgrade() and method != "CONNECT":
            return
        self._head_bytes = 0
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

    def on_body(self, part: bytes) -> None:
        """Add a part of the request's body."""
        if self._parsed is not None:
            self._head_bytes = 0
            self._parsed.feed(part)

    def on_message_complete(self) -> None:
        """Mark the request's body as whole."""
        if self._parsed is not None:
            self._head_bytes = 0
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
        date_line, head_only = self._listener.date_line, request.method == "HEAD"
        self.write(response.to_bytes(date_line=date_line, keep_alive=keep_alive, head_only=head_only))
        if self._request is request:
            self._request = None
        if not keep_alive:
            self.close(unread=not (request.is_whole or self._eof or self._listener.is_closing))
        elif self._writable:
            self._begin_next()

    def _begin_next(self) -> None:
        """Begin the next request, or wait for one."""
        if self._ended:
            return
        if self._ahead:
            self._begin(self._ahead.popleft())
        elif self._final_error is not None:
            unparsed = Request(self, method="", version="1.1", target=b"", headers=[], keep_alive=False)
            self._respond(unparsed, Response(self._final_error.status, encode_error(self._final_error)))
        elif self._unparsed:
            data, self._unparsed = self._unparsed, b""
            self._parse_pieces(data)
            if not self._is_ahead:
                self.resume_reading()
            if self._request is None:
                self._wait_for_request()
        else:
            self._wait_for_request()

    def _wait_for_request(self) -> None:
        """Become idle, or close where no request can come any more."""
        if self._ignores_input or self._eof or self.is_closing:
            self.close()
        else:
            self._listener.set_idle(self)
            self.resume_reading()

    # ---- for the request and the listener ----

    @property
    def is_closing(self) -> bool:
        """Tell whether the next answer is the last."""
        return self._ended or self._listener.is_closing

    def write(self, data: bytes) -> None:
        """Send the bytes, or buffer them until they can be sent."""
        if self._transport is not None and not self._ended:
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Stop reading from the socket."""
        if self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read from the socket again."""
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def close(self, *, unread: bool = False) -> None:
        """Close once everything is sent; `unread`: after the rest of the request, or the client loses its answer."""
        if self._transport is None or self._ended:
            return
        self._ended = self._ignores_input = True
        self._listener.start_closing(self)
        if unread and self._transport.can_write_eof():
            self._transport.write_eof()
            self.resume_reading()
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close at once, unsent bytes or not."""
        if self._transport is not None:
            self._transport.abort()
