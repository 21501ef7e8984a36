"""Accepts connections: as many as there may be, in all and from one address, and no slow one for ever."""

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
_AT_ONCE = 64
"""Connections that are accepted before others have their turn."""
_PAUSE = 0.25
"""Seconds until it is tried again where nothing can be accepted, for want of descriptors as a rule."""
_QUIET = 60.0
"""Seconds between two log lines about that."""
_HEARING = 1.0
"""Seconds for which somebody who is turned away is heard out."""
_MOST_TURNED_AWAY = 64
"""Of whom so many are heard out at once."""
_TICKS = 20
"""Looks for overdue connections within a time limit."""


def bind_listener(host: str, port: int) -> socket.socket:
    """Bind and listen, and so hold the port: whoever comes second fails here, even in the same moment.

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
        """Since when they have been waiting for a request, the longest first."""
        self._unsent: dict[Connection, float] = {}
        """Since when the rest of an answer, or of a connection, has been waiting to go, the longest first."""
        self._opening: set[asyncio.Task[Any]] = set()
        self._turned_away: set[socket.socket] = set()
        self._empty = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._complained = -_QUIET
        self._tick = min(settings.header_timeout, settings.write_timeout, _TICKS / 2) / _TICKS

    def start(self) -> None:
        """Accept from now on."""
        self._look()
        self._loop.add_reader(self._socket, self._accept)

    async def close(self) -> None:
        """Accept nothing more, close what is idle, and wait for the answers under way."""
        self.is_closing = True
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for accepted in list(self._turned_away):
            self._let_go(accepted)
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

    # ---- new ones ----

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, client = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._wait(error)
                return
            accepted.setblocking(False)
            if self._has_room(client[0]):
                self._open(accepted, client[:2])
            else:
                self._turn_away(accepted)

    def _wait(self, error: OSError) -> None:
        """Leave new connections where they are for a moment: the kernel keeps them."""
        self._loop.remove_reader(self._socket)
        self._loop.call_later(_PAUSE, self._resume)
        if monotonic() - self._complained >= _QUIET:
            self._complained = monotonic()
            self._log.error(
                "no connection can be accepted: new ones wait; raise the limit of open files, or lower max_connections",
                why=error.strerror,
                connections=len(self._connections),
            )

    def _resume(self) -> None:
        if not self.is_closing:
            self._loop.add_reader(self._socket, self._accept)

    def _has_room(self, address: str) -> bool:
        """Find a place for one more, if need be that of the connection that has been idle longest."""
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
        opening.add_done_callback(lambda done: self._opened(done, client[0]))

    def _opened(self, opening: "asyncio.Task[Any]", address: str) -> None:
        self._opening.discard(opening)
        if opening.exception() is not None:  # it went before it came
            self._leave(address)

    def _turn_away(self, accepted: socket.socket) -> None:
        self._count_error("unavailable")
        error = HTTPError(503, "there are too many connections: try again, or keep one open for many requests")
        response = Response(503, encode_error(error), headers=[(b"retry-after", b"1")])
        try:
            accepted.send(response.to_bytes(date_line=self.date_line, keep_alive=False, head_only=False))
            accepted.shutdown(socket.SHUT_WR)
        except OSError:
            accepted.close()
            return
        if len(self._turned_away) >= _MOST_TURNED_AWAY:
            accepted.close()
            return
        self._turned_away.add(accepted)
        self._loop.add_reader(accepted, self._discard, accepted)
        self._loop.call_later(_HEARING, self._let_go, accepted)

    def _discard(self, accepted: socket.socket) -> None:
        """Hear out who is turned away: what is unread when it is closed would cost the client its answer."""
        try:
            if accepted.recv(1 << 16):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._let_go(accepted)

    def _let_go(self, accepted: socket.socket) -> None:
        if accepted in self._turned_away:
            self._turned_away.discard(accepted)
            self._loop.remove_reader(accepted)
            accepted.close()

    # ---- what connections say of themselves ----

    def add(self, connection: Connection) -> None:
        """It is open."""
        self._connections.add(connection)
        self.set_idle(connection)

    def remove(self, connection: Connection) -> None:
        """It is closed, or as good as."""
        self._idle.pop(connection, None)
        self._unsent.pop(connection, None)
        if connection in self._connections:
            self._connections.remove(connection)
            self._leave(connection.client[0])
        if not self._connections:
            self._empty.set()

    def _leave(self, address: str) -> None:
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def set_idle(self, connection: Connection) -> None:
        """It waits for a request."""
        if self.is_closing:
            connection.close()
        else:
            self._idle[connection] = self._loop.time()

    def set_busy(self, connection: Connection) -> None:
        """It has a request."""
        self._idle.pop(connection, None)

    def await_close(self, connection: Connection) -> None:
        """It has something to send, or to hear, before it can go on or end."""
        self._idle.pop(connection, None)
        self._unsent.setdefault(connection, self._loop.time())

    def forgive(self, connection: Connection) -> None:
        """It has sent everything."""
        self._unsent.pop(connection, None)

    def report_fault(self, error: Exception) -> None:
        """A request was left without an answer."""
        self._log.error("a request failed", exc_info=error)

    def _look(self) -> None:
        """End what is overdue, and set the date."""
        self.date_line = f"date: {formatdate(usegmt=True)}\r\n".encode()
        now = self._loop.time()
        for connection in _overdue(self._idle, now - self._settings.header_timeout):
            connection.close()
        for connection in _overdue(self._unsent, now - self._settings.write_timeout):
            connection.abort()
        self._timer = self._loop.call_later(self._tick, self._look)


def _overdue(since: dict[Connection, float], limit: float) -> list[Connection]:
    overdue = []
    for connection, start in since.items():
        if start > limit:
            break
        overdue.append(connection)
    return overdue
