"""Accepts connections, limits their number in all and by address, and closes slow ones."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from time import monotonic
from typing import Any

from latecomer.errors import InputError
from latecomer.service.http.connection import App, Connection
from latecomer.service.http.errors import HTTPError, encode_error
from latecomer.service.http.logging_setup import Log
from latecomer.service.http.response import Response
from latecomer.service.http.settings import Settings

_BACKLOG = 1024
_ACCEPT_BATCH = 64
"""Connections that are accepted in one turn of the loop."""
_ACCEPT_PAUSE = 0.25
"""Seconds until the next try after `accept` failed, mostly for want of descriptors."""
_LOG_INTERVAL = 60.0
"""Seconds between two log lines about a failing `accept`."""
_REJECTED_SECONDS = 1.0
"""Seconds for which the rest of a rejected request is read."""
_MAX_REJECTED = 64
"""Rejected connections that are read at once."""
_CHECKS = 20
"""Checks for overdue connections within a time limit."""


def bind_listener(host: str, port: int) -> socket.socket:
    """Bind and listen, and so hold the port: a second server fails here, even at the same moment.

    SO_REUSEADDR lets a restart take over a port with connections in TIME_WAIT. It does not let two listen. The kernel
    frees the port when the process ends, however it ends.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise InputError(f"{host} port {port} cannot be bound: {error.strerror}; choose another") from None
    return listener


class Listener:
    """Every connection of one server.

    Where there are too many, the one that has been idle longest is closed for a new one; where none is idle, the new
    one is refused with 503.
    """

    def __init__(
        self, bound: socket.socket, settings: Settings, app: App, log: Log, *, count_error: Callable[[str], None]
    ) -> None:
        self._socket, self._settings, self._app, self._log, self._count_error = bound, settings, app, log, count_error
        self._loop = asyncio.get_running_loop()
        self.address: tuple[str, int] = bound.getsockname()[:2]
        self.is_closing = False
        self.date_line = b""
        self._addresses: Counter[str] = Counter()
        self._connections: set[Connection] = set()
        self._idle: dict[Connection, float] = {}
        """Since when each has been waiting for a request, the longest first."""
        self._closing: dict[Connection, float] = {}
        """Since when each has had something to send or to read before it goes on or closes, the longest first."""
        self._opening: set[asyncio.Task[Any]] = set()
        self._rejected: set[socket.socket] = set()
        self._empty = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._logged_at = -_LOG_INTERVAL
        self._tick = min(settings.header_timeout, settings.write_timeout, _CHECKS / 2) / _CHECKS

    def start(self) -> None:
        """Accept from now on."""
        self._check()
        self._loop.add_reader(self._socket, self._accept)

    async def close(self) -> None:
        """Accept nothing more, close what is idle, and wait for the answers under way."""
        self.is_closing = True
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for accepted in list(self._rejected):
            self._close_rejected(accepted)
        for connection in list(self._idle):
            connection.close()
        if self._opening:
            await asyncio.wait(self._opening)
        while self._connections:
            self._empty.clear()
            await self._empty.wait()
        if self._timer is not None:
            self._timer.cancel()

    def abort(self) -> None:
        """Close every connection at once."""
        for connection in list(self._connections):
            connection.abort()

    # ---- accepting ----

    def _accept(self) -> None:
        for _ in range(_ACCEPT_BATCH):
            try:
                accepted, client = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause_accepting(error)
                return
            accepted.setblocking(False)
            if self._make_room(client[0]):
                self._open(accepted, client[:2])
            else:
                self._reject(accepted)

    def _pause_accepting(self, error: OSError) -> None:
        """Leave new connections to the kernel's queue for a moment."""
        self._loop.remove_reader(self._socket)
        self._loop.call_later(_ACCEPT_PAUSE, self._resume_accepting)
        if monotonic() - self._logged_at >= _LOG_INTERVAL:
            self._logged_at = monotonic()
            self._log.error(
                "no connection can be accepted: new ones wait; raise the limit of open files, or lower max_connections",
                why=error.strerror,
                connections=len(self._connections),
            )

    def _resume_accepting(self) -> None:
        if not self.is_closing:
            self._loop.add_reader(self._socket, self._accept)

    def _make_room(self, address: str) -> bool:
        """Tell whether one more may come; close the connection that has been idle longest if need be."""
        limits = self._settings
        if self._addresses[address] >= limits.max_connections_per_address:
            return self._close_idle(address)
        return len(self._connections) + len(self._opening) < limits.max_connections or self._close_idle(None)

    def _close_idle(self, address: str | None) -> bool:
        for connection in self._idle:
            if address is None or connection.client[0] == address:
                connection.abort()
                self.remove(connection)
                return True
        return False

    def _open(self, accepted: socket.socket, client: tuple[str, int]) -> None:
        self._addresses[client[0]] += 1
        opening = self._loop.create_task(
            self._loop.connect_accepted_socket(lambda: Connection(self, self._app, client), accepted)
        )
        self._opening.add(opening)
        opening.add_done_callback(lambda done: self._finish_opening(done, client[0]))

    def _finish_opening(self, opening: "asyncio.Task[Any]", address: str) -> None:
        self._opening.discard(opening)
        if opening.exception() is not None:  # the client has gone already
            self._forget_address(address)

    def _reject(self, accepted: socket.socket) -> None:
        self._count_error("unavailable")
        error = HTTPError(503, "there are too many connections: try again, or keep one open for many requests")
        response = Response(503, encode_error(error), headers=[(b"retry-after", b"1")])
        try:
            accepted.send(response.to_bytes(date_line=self.date_line, keep_alive=False, head_only=False))
            accepted.shutdown(socket.SHUT_WR)
        except OSError:
            accepted.close()
            return
        if len(self._rejected) >= _MAX_REJECTED:
            accepted.close()
            return
        self._rejected.add(accepted)
        self._loop.add_reader(accepted, self._discard, accepted)
        self._loop.call_later(_REJECTED_SECONDS, self._close_rejected, accepted)

    def _discard(self, accepted: socket.socket) -> None:
        """Read and drop the rest of a rejected request: closing with unread bytes would cost the client its answer."""
        try:
            if accepted.recv(1 << 16):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._close_rejected(accepted)

    def _close_rejected(self, accepted: socket.socket) -> None:
        if accepted in self._rejected:
            self._rejected.discard(accepted)
            self._loop.remove_reader(accepted)
            accepted.close()

    # ---- called by connections ----

    def add(self, connection: Connection) -> None:
        """Register an open connection."""
        self._connections.add(connection)
        self.set_idle(connection)

    def remove(self, connection: Connection) -> None:
        """Deregister a connection that is closed or about to be."""
        self._idle.pop(connection, None)
        self._closing.pop(connection, None)
        if connection in self._connections:
            self._connections.remove(connection)
            self._forget_address(connection.client[0])
        if not self._connections:
            self._empty.set()

    def _forget_address(self, address: str) -> None:
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def set_idle(self, connection: Connection) -> None:
        """Note that the connection waits for a request."""
        if self.is_closing:
            connection.close()
        else:
            self._idle[connection] = self._loop.time()

    def set_busy(self, connection: Connection) -> None:
        """Note that the connection has a request."""
        self._idle.pop(connection, None)

    def start_closing(self, connection: Connection) -> None:
        """Start the write timeout: the connection has something to send or to read before it goes on or closes."""
        self._idle.pop(connection, None)
        self._closing.setdefault(connection, self._loop.time())

    def stop_closing(self, connection: Connection) -> None:
        """Stop the write timeout: the connection has sent everything."""
        self._closing.pop(connection, None)

    def report_fault(self, error: Exception) -> None:
        """Log an error that the application did not answer."""
        self._log.error("a request failed", exc_info=error)

    def _check(self) -> None:
        """Close overdue connections, and set the date."""
        self.date_line = f"date: {formatdate(usegmt=True)}\r\n".encode()
        now = self._loop.time()
        for connection in _overdue(self._idle, now - self._settings.header_timeout):
            connection.close()
        for connection in _overdue(self._closing, now - self._settings.write_timeout):
            connection.abort()
        self._timer = self._loop.call_later(self._tick, self._check)


def _overdue(since: dict[Connection, float], limit: float) -> list[Connection]:
    overdue = []
    for connection, start in since.items():
        if start > limit:
            break
        overdue.append(connection)
    return overdue
