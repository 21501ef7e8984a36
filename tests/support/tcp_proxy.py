"""A TCP proxy for tests: it forwards connections, and on request drops, swallows, delays, half-closes, resets and
restores them.

It runs an event loop in a thread of its own; every method may be called from any other thread. With several targets
it is a load balancer: each connection goes to the next target that accepts it.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from typing import TypeVar

from free_ports import free_port

T = TypeVar("T")
Address = tuple[str, int]
CALL_LIMIT, CONNECT_LIMIT, CHUNK = 10.0, 5.0, 1 << 16
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER of no time: a close sends RST."""


class Way(Enum):
    """A direction of the bytes."""

    TO_TARGET = "to the target"
    TO_CLIENT = "to the client"


class _Connection:
    """The two sockets of a connection that is forwarded."""

    def __init__(self, client: asyncio.StreamWriter, target: asyncio.StreamWriter) -> None:
        self.writers = {Way.TO_CLIENT: client, Way.TO_TARGET: target}

    def reset(self) -> None:
        """Close both sockets by RST."""
        for writer in self.writers.values():
            raw = writer.get_extra_info("socket")
            if raw is not None:
                with suppress(OSError):
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()

    def half_close(self, way: Way) -> None:
        """Send the end of the stream in one direction; the other stays open."""
        with suppress(OSError, RuntimeError):
            self.writers[way].write_eof()


class TcpProxy:
    """Forwards connections to its targets."""

    def __init__(self, targets: Sequence[Address]) -> None:
        self.port = free_port()
        self._targets, self._turn = list(targets), 0
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._delay = 0.0
        self._refuses = False
        self._swallowed: set[Way] = set()
        self._loop = asyncio.new_event_loop()
        self._open = {way: asyncio.Event() for way in Way}
        for event in self._open.values():
            event.set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tcp proxy", daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._accept, "127.0.0.1", self.port), self._loop
        ).result(CALL_LIMIT)

    # ---- faults ----

    def drop(self, *ways: Way) -> None:
        """Forward nothing more in these directions (in both, where none is given), and say so to nobody.

        New connections are accepted, and get no answer. Bytes are kept: `restore` forwards them, as a network does that
        sends lost packets again.
        """
        self._call(lambda: self._close_ways(ways or tuple(Way)))

    def swallow(self, *ways: Way) -> None:
        """Take what comes in these directions (in both, where none is given), acknowledge it, and throw it away.

        New connections are accepted, and get no answer. What was thrown away does not come back: after `restore`, a
        connection of before may wait for ever.
        """
        self._call(lambda: self._swallowed.update(ways or tuple(Way)))

    def delay(self, seconds: float) -> None:
        """Hold every piece back for that long."""
        self._call(lambda: setattr(self, "_delay", seconds))

    def half_close(self, way: Way) -> None:
        """End the stream of every connection in one direction; bytes still pass in the other."""
        self._call(lambda: self._half_close(way))

    def cut(self) -> None:
        """Reset every connection, and each new one, until `restore`."""
        self._call(self._cut)

    def reset(self) -> None:
        """Reset every connection; new ones are accepted."""
        self._call(self._reset)

    def restore(self) -> None:
        """Forward again, without delay; what was kept first."""
        self._call(self._restore)

    def retarget(self, *targets: Address) -> None:
        """Send new connections elsewhere; the old ones stay where they are."""
        self._call(lambda: setattr(self, "_targets", list(targets)))

    @property
    def connections(self) -> int:
        """Connections that are forwarded now."""
        return self._call(lambda: len(self._connections))

    # ---- in the event loop's thread ----

    def _close_ways(self, ways: Sequence[Way]) -> None:
        for way in ways:
            self._open[way].clear()

    def _half_close(self, way: Way) -> None:
        for connection in list(self._connections):
            connection.half_close(way)

    def _cut(self) -> None:
        self._refuses = True
        self._reset()

    def _reset(self) -> None:
        for connection in list(self._connections):
            connection.reset()

    def _restore(self) -> None:
        self._refuses, self._delay = False, 0.0
        self._swallowed.clear()
        for event in self._open.values():
            event.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._forward(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # a side that has gone
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = None if self._refuses else await self._connect()
        if found is None or self._refuses:
            _Connection(writer, writer if found is None else found[1]).reset()
            return
        connection = _Connection(writer, found[1])
        self._connections.add(connection)
        try:
            await asyncio.gather(
                self._pump(reader, found[1], Way.TO_TARGET),
                self._pump(found[0], writer, Way.TO_CLIENT),
            )
        finally:
            self._connections.discard(connection)
            found[1].transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        targets = list(self._targets)
        self._turn += 1
        for i in range(len(targets)):
            host, port = targets[(self._turn + i) % len(targets)]
            with suppress(OSError, TimeoutError):
                return await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_LIMIT)
        return None

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way) -> None:
        while data := await reader.read(CHUNK):
            if self._delay:
                await asyncio.sleep(self._delay)
            await self._open[way].wait()
            if writer.is_closing():
                return
            if way in self._swallowed:
                continue
            try:
                writer.write(data)
                await writer.drain()
            except RuntimeError:  # this direction was half-closed: its bytes are lost
                continue
        if way not in self._swallowed:
            with suppress(OSError, RuntimeError):
                writer.write_eof()

    # ---- its end ----

    def close(self) -> None:
        """Reset what is open, and end the thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(CALL_LIMIT)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_LIMIT)
        self._loop.close()

    async def _end(self) -> None:
        self._refuses = True
        self._server.close()
        self._reset()
        waiting = list(self._tasks)
        for task in waiting:
            task.cancel()
        if waiting:
            await asyncio.wait(waiting, timeout=CALL_LIMIT / 2)
        await asyncio.sleep(0)  # transports close their sockets in the next turn of the loop

    def _call(self, function: Callable[[], T]) -> T:
        async def call() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(CALL_LIMIT)


@contextmanager
def run_proxy(*ports: int) -> Iterator[TcpProxy]:
    """Run a proxy to ports of this machine for the length of a block."""
    proxy = TcpProxy([("127.0.0.1", port) for port in ports])
    try:
        yield proxy
    finally:
        proxy.close()
