"""Edges of HTTP/1.1 that clients and attackers reach: offers of another protocol, long heads, limits, expectations."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO

import pytest
from servers import Server, run_server, wait_until

BODY = json.dumps({"actions": [[0.6, 0.0], [0.0, 0.8]]}).encode()
DECIDE = b"POST /v1/bandits/b/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    store = tmp_path_factory.mktemp("edges") / "a.db"
    with run_server(store, LATECOMER_MAX_CONNECTIONS_PER_ADDRESS="8", LATECOMER_BODY_TIMEOUT="300") as server:
        spec = b'{"dim": 2, "window": 7, "policy": "OTFLinUCB"}'
        head = b"PUT /v1/bandits/b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        assert talk(server, head + b"Content-Length: %d\r\n\r\n" % len(spec) + spec) == [201]
        yield server


def talk(server: Server, *pieces: bytes) -> list[int]:
    """Send pieces one after the other, then say no more; the statuses of the answers."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        for piece in pieces:
            connection.sendall(piece)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as stream:
            return list(statuses_in(stream))


def statuses_in(stream: IO[bytes]) -> Iterator[int]:
    """The statuses of answers that follow each other."""
    while line := stream.readline():
        yield int(line.split()[1])
        size = 0
        while (header := stream.readline()) not in (b"\r\n", b""):
            name, _, value = header.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        stream.read(size)


@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_an_upgrade_offer_is_ignored_and_the_body_read(server: Server, step: int) -> None:
    request = DECIDE + OFFER + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    chunked = DECIDE + OFFER + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(BODY) + BODY + b"\r\n0\r\n\r\n"
    plain = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + OFFER + b"\r\n"
    data = request + chunked + plain + request
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    assert talk(server, *pieces) == [201, 201, 200, 201]


@pytest.mark.parametrize("long", [b"X-Long: " + b"a" * 70_000, b"X-Long: " + b"a" * 600_000])
def test_a_head_of_more_than_64_kb_is_refused(server: Server, long: bytes) -> None:
    assert talk(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + long + b"\r\n\r\n") == [431]
    assert talk(server, b"GET /healthz?" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n") == [431]
    short = b"X-Short: " + b"a" * 60_000
    assert talk(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + short + b"\r\n\r\n") == [200]


@pytest.mark.parametrize(
    ("version", "expect", "statuses"),
    [(b"1.1", b"100-continue", [100, 201]), (b"1.1", b"x", [201]), (b"1.0", b"100-continue", [201])],
)
def test_100_continue_is_sent_to_http_1_1_alone(
    server: Server, version: bytes, expect: bytes, statuses: list[int]
) -> None:
    head = DECIDE.replace(b"1.1", version) + b"Expect: %b\r\nContent-Length: %d\r\n\r\n" % (expect, len(BODY))
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head)
        connection.settimeout(0.5 if len(statuses) == 1 else 30)
        first = b""
        try:
            first = connection.recv(65_536)
        except TimeoutError:
            assert len(statuses) == 1
        connection.settimeout(30)
        connection.sendall(BODY)
        answer = connection.recv(65_536)
    assert [int(part.split()[1]) for part in (first, answer) if part] == statuses


def test_a_rejected_connection_gets_503_also_with_a_body(server: Server) -> None:
    with ExitStack() as stack:
        for _ in range(8):
            busy = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            busy.sendall(DECIDE + b"Expect: 100-continue\r\nContent-Length: 100\r\n\r\n")
            assert busy.recv(65_536).startswith(b"HTTP/1.1 100 ")  # the body is waited for, and never comes
        body = BODY * 100
        for _ in range(10):
            assert talk(server, DECIDE + b"Content-Length: %d\r\n\r\n" % len(body) + body) == [503]
    health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert wait_until(lambda: talk(server, health) == [200])  # they are gone


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (b"GET http://localhost/healthz HTTP/1.1\r\nConnection: close\r\n\r\n", b"200 OK"),
        (b"GET /healthz HTTP/1.0\r\n\r\n", b"200 OK"),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n", b"200 OK"),
        (b"GET /healthz HTTP/1.1\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n", b"200 OK"),
    ],
    ids=["whole address", "HTTP/1.0", "the last one", "upgrade"],
)
def test_the_last_request_of_a_connection_gets_one_answer(server: Server, sent: bytes, found: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(sent)
        got = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert got.startswith(b"HTTP/1.1 " + found)
    assert got.count(b"HTTP/1.1") == 1
