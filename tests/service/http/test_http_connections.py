"""Connections that do not read, do not write, or are too many: others are answered as before."""

import os
import resource
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from servers import Server, error_of, run_server

from latecomer.service.http.settings import Settings

LIMIT = 30.0
SCHEMA, HEALTH = b"GET /schema HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
SPEC = b'{"dim": 2, "window": 7}'
PUT = b"PUT /v1/bandits/b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        server = Server(tmp_path_factory.mktemp("connections") / "a.db")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    yield server
    server.stop()


def connect(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT)


@contextmanager
def connected(server: Server, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connect(server)) for _ in range(count)]


def answers(connection: socket.socket) -> bytes:
    """All that comes until the server closes."""
    parts = []
    while part := connection.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


@contextmanager
def deaf(server: Server, count: int) -> Iterator[list[socket.socket]]:
    """Connections that ask for as much as fits, and read nothing."""
    with connected(server, count) as connections:
        for connection in connections:
            connection.setblocking(False)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        end, waiting = time.monotonic() + LIMIT, list(connections)
        while waiting and time.monotonic() < end:  # until nothing more goes in: the server waits for each of them
            time.sleep(0.05)
            waiting = [connection for connection in waiting if _stuff(connection)]
        yield connections


def _stuff(connection: socket.socket) -> bool:
    try:
        return connection.send(SCHEMA * 1000) > 0
    except OSError:
        return False


def is_cut(connection: socket.socket) -> bool:
    """The server has reset it: the kernel says so, for reading would let the server go on."""
    return _happens(connection, select.POLLERR | select.POLLHUP)


def is_closed(connection: socket.socket) -> bool:
    """The server has ended it, and nothing else has come."""
    return _happens(connection, select.POLLIN) and not connection.recv(1, socket.MSG_PEEK)


def _happens(connection: socket.socket, event: int) -> bool:
    poll = select.poll()
    poll.register(connection, event)
    return bool(poll.poll(0))


def await_event(server: Server, event: str) -> None:
    end = time.monotonic() + LIMIT
    while not server.logged(event):
        assert time.monotonic() < end, f"it did not say {event!r}"
        time.sleep(0.02)


def await_all(connections: list[socket.socket]) -> None:
    end = time.monotonic() + LIMIT
    while not all(map(is_cut, connections)):
        assert time.monotonic() < end, "some connections are still open"
        time.sleep(0.1)


def test_a_client_that_does_not_read_is_disconnected(tmp_path: Path) -> None:
    """As many connections as there may be, none of which reads: the next one found no place, for ever."""
    with (
        run_server(tmp_path / "a.db", LATECOMER_MAX_CONNECTIONS="24", LATECOMER_WRITE_TIMEOUT="2") as server,
        deaf(server, 24) as connections,
    ):
        await_all(connections)
        for _ in range(10):
            assert httpx.get(f"{server.url}/healthz", timeout=LIMIT).json() == {"status": "alive"}


def test_slow_readers_do_not_delay_others(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server, deaf(server, 24):
        for _ in range(10):
            assert httpx.get(f"{server.url}/healthz", timeout=10).status_code == 200


def test_a_slow_reader_gets_the_whole_answer(server: Server) -> None:
    """In time, though late: many answers that wait for each other, in their order."""
    whole = server.http.get("/schema").content
    with connect(server) as connection:
        connection.sendall((SCHEMA + HEALTH) * 200)
        connection.shutdown(socket.SHUT_WR)
        time.sleep(1)
        got = answers(connection)
    assert got.count(whole) == got.count(b'{"status":"alive"}') == 200


def test_idle_connections_are_closed_for_new_ones(tmp_path: Path) -> None:
    """More than there may be in all: the one that has been idle longest goes, and nobody waits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    try:
        with run_server(tmp_path / "a.db", LATECOMER_HEADER_TIMEOUT="120") as server, connected(server, 1400) as idle:
            for _ in range(10):
                assert httpx.get(f"{server.url}/healthz", timeout=5).status_code == 200
            kept = [connection for connection in idle if not is_closed(connection)]
            assert len(kept) <= Settings().max_connections_per_address
            assert kept[-1] is idle[-1]
            kept[-1].sendall(HEALTH)
            assert kept[-1].recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_many_busy_connections_of_one_address_are_refused(tmp_path: Path) -> None:
    """Another address of this machine has a place."""
    with run_server(tmp_path / "a.db", LATECOMER_MAX_CONNECTIONS_PER_ADDRESS="3") as server:
        server.http.close()
        with connected(server, 3) as busy:
            for connection in busy:
                connection.sendall(PUT + b"Content-Length: 9\r\n\r\n")  # and nothing else
            refused = next(answer for answer in _repeated(server) if answer.status_code != 200)
            assert (refused.status_code, error_of(refused)["code"]) == (503, "unavailable")
            assert refused.headers["retry-after"] == "1"
            other = socket.create_connection(("127.0.0.1", server.port), LIMIT, source_address=("127.0.0.2", 0))
            with other:
                other.sendall(HEALTH)
                assert other.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
        assert any(answer.status_code == 200 for answer in _repeated(server))


def _repeated(server: Server) -> Iterator[httpx.Response]:
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        yield httpx.get(f"{server.url}/healthz", timeout=LIMIT)
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (HEALTH, b"200 OK"),
        (PUT + b"Content-Length: %d\r\n\r\n%b" % (len(SPEC), SPEC), b"201 Created"),
        (PUT + b"Content-Length: 99\r\n\r\n{", b"400 Bad Request"),
    ],
    ids=["no body", "a body", "half a body"],
)
def test_a_request_followed_by_a_half_close_is_answered(server: Server, sent: bytes, expected: bytes) -> None:
    """A client that says it is done writing still reads."""
    with connect(server) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert answers(connection).startswith(b"HTTP/1.1 " + expected)


def test_pipelined_requests_are_answered_in_their_order(server: Server) -> None:
    with connect(server) as connection:
        paths = ["/healthz", "/readyz", "/none", "/v1/bandits"] * 50
        connection.sendall("".join(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n" for path in paths).encode())
        connection.sendall(b"this is not HTTP\r\n\r\n")
        got = answers(connection)
        statuses = [int(part[:3]) for part in got.split(b"HTTP/1.1 ")[1:]]
        assert statuses == [200, 200, 404, 200] * 50 + [400]
        assert got.endswith(b'"}}')


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET / HTTP/3.0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, 431),
        (b"GET /" + b"x" * 70_000, 431),
        (b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", 431),
    ],
    ids=["TLS", "version", "length", "two lengths", "length and chunks", "long header", "long target", "many headers"],
)
def test_bytes_that_are_not_http_get_an_error_body(server: Server, sent: bytes, status: int) -> None:
    with connect(server) as connection:
        connection.sendall(sent)
        got = answers(connection)
    assert got.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close\r\n" in got
    assert got.partition(b"\r\n\r\n")[2].startswith(b'{"error":{"code":')


def test_expect_100_continue_is_answered(server: Server) -> None:
    with connect(server) as connection:
        head = PUT.replace(b"/b ", b"/waited ")
        connection.sendall(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(SPEC))
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(SPEC)
        assert connection.recv(65536).startswith(b"HTTP/1.1 201 Created")


# ---- descriptors ----


WAITING = "no connection can be accepted: new ones wait; raise the limit of open files, or lower max_connections"


def cpu(server: Server) -> float:
    """Seconds of processor time that it has used."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_without_descriptors_accept_waits_and_logs_once(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db", LATECOMER_HEADER_TIMEOUT="600") as server:
        used = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
        before = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (used + 8, before[1]))
        with connected(server, 20) as held:
            await_event(server, WAITING)
            start, used_before = time.monotonic(), cpu(server)
            time.sleep(3)
            share = (cpu(server) - used_before) / (time.monotonic() - start)
            assert len(server.logged(WAITING)) == 1
            assert share < 0.2, "it spins"
            for connection in held[:15]:
                connection.close()
            assert httpx.get(f"{server.url}/healthz", timeout=LIMIT).status_code == 200
        assert len(server.logged(WAITING)) == 1


def test_the_limit_of_open_files_is_raised_for_connections(server: Server) -> None:
    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    assert soft >= min(hard, Settings().max_connections)


# ---- the end ----


def test_sighup_drains_like_sigterm(tmp_path: Path, signals_that_arrive: None) -> None:
    server = Server(tmp_path / "a.db")
    with connect(server) as connection:
        connection.sendall(PUT + b"Content-Length: %d\r\n\r\n%b" % (len(SPEC), SPEC[:9]))
        time.sleep(0.3)
        server.process.send_signal(signal.SIGHUP)
        await_event(server, "draining")
        connection.sendall(SPEC[9:])
        assert answers(connection).startswith(b"HTTP/1.1 201 Created")
    assert server.process.wait(LIMIT) == 0
    assert server.stop() == 0
    assert server.logged("stopped")
