"""A load generator on raw sockets: a request is out again the moment its answer is in. The same for every endpoint."""

import select
import socket
from collections.abc import Iterable, Iterator
from itertools import cycle
from time import perf_counter

from msgspec import Struct


class Load(Struct):
    """Answers and latencies of a stretch of load."""

    seconds: float
    latencies: list[float]
    bodies: list[bytes]

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds

    def quantile(self, share: float) -> float:
        return sorted(self.latencies)[int(share * len(self.latencies))]


def request(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def run(port: int | list[int], requests: list[bytes], *, connections: int, seconds: float, once: bool = False) -> Load:
    """Keep every connection busy for so long, or (`once`) until each request was sent once; bodies are kept.

    With several ports, connections are shared out among them.
    """
    ports = [port] if isinstance(port, int) else port
    waiting: Iterator[bytes] = iter(requests) if once else cycle(requests)
    poll = select.epoll()
    lines = {line.number: line for line in (_Line(ports[i % len(ports)]) for i in range(connections))}
    latencies: list[float] = []
    bodies: list[bytes] = []
    try:
        for line in lines.values():
            poll.register(line.number, select.EPOLLIN)
        start = now = perf_counter()
        busy = sum(line.send(message, now) for line, message in zip(lines.values(), waiting, strict=False))
        while busy:
            for number, _ in poll.poll(30):
                line = lines[number]
                body = line.receive()
                if body is None:
                    continue
                now = perf_counter()
                latencies.append(now - line.sent_at)
                bodies.append(body)
                message = next(waiting, None) if once or now - start < seconds else None
                busy += line.send(message, now) - 1 if message is not None else -1
        return Load(perf_counter() - start, latencies, bodies)
    finally:
        poll.close()
        for line in lines.values():
            line.close()


class _Line:
    """One connection, with at most one request on it."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = self._socket.fileno()
        self.sent_at = 0.0
        self._got = b""

    def send(self, message: bytes, now: float) -> int:
        self.sent_at = now
        self._socket.sendall(message)
        return 1

    def receive(self) -> bytes | None:
        """The answer's body, once it is whole."""
        part = self._socket.recv(1 << 18)
        if not part:
            raise ConnectionError("the server closed a connection")
        self._got = self._got + part if self._got else part
        end = self._got.find(b"\r\n\r\n")
        if end < 0 or len(self._got) < end + 4 + _length(self._got[:end]):
            return None
        whole, self._got = self._got, b""
        if not whole.startswith(b"HTTP/1.1 20"):
            raise ConnectionError(f"not a success: {whole[:500]!r}")
        return whole[end + 4 :]

    def close(self) -> None:
        self._socket.close()


def _length(head: bytes) -> int:
    start = head.index(b"content-length: ") + 16
    end = head.find(b"\r\n", start)
    return int(head[start:] if end < 0 else head[start:end])


def merged(loads: Iterable[Load]) -> list[bytes]:
    return [body for load in loads for body in load.bodies]
