"""Requests that never end: closed in time, and nobody else waits for them."""

import select
import socket
import time
from collections.abc import Iterator

import pytest
from servers import Server, run_server

HALF = 200
TIMEOUT = 3.0
LIMIT = TIMEOUT + 5.0
HEAD = b"POST /v1/bandits/b/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HALF_A_HEAD = HEAD + b"Content-Le"
HALF_A_BODY = HEAD + b'Content-Length: 1000\r\n\r\n{"actions": [[0.'
NO_CHUNK = HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    store, seconds = tmp_path_factory.mktemp("half") / "a.db", str(TIMEOUT)
    with run_server(store, LATECOMER_HEADER_TIMEOUT=seconds, LATECOMER_BODY_TIMEOUT=seconds) as server:
        assert server.http.put("/v1/bandits/b", json={"dim": 2, "window": 100}).status_code == 201
        yield server


def test_half_sent_requests_are_closed_while_others_are_served(server: Server) -> None:
    before = server.http.get("/v1/bandits/b/stats").json()["rounds"]
    open_ = {}
    start = time.monotonic()
    for begun in (HALF_A_HEAD, HALF_A_BODY, NO_CHUNK):
        for _ in range(HALF if begun is not NO_CHUNK else 20):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
            connection.sendall(begun)
            open_[connection.fileno()] = connection
    slowest, answered = 0.0, 0
    poll = select.poll()
    for number in open_:
        poll.register(number, select.POLLIN)
    while open_ and time.monotonic() - start < LIMIT + 5:
        sent = time.monotonic()
        server.http.post("/v1/bandits/b/decisions", json={"actions": [[0.6, 0.0]]}).raise_for_status()
        slowest, answered = max(slowest, time.monotonic() - sent), answered + 1
        for number, _ in poll.poll(50):
            if not open_[number].recv(65536):
                poll.unregister(number)
                open_.pop(number).close()
    ended = time.monotonic() - start
    for connection in open_.values():
        connection.close()
    assert not open_, f"{len(open_)} are still open"
    assert ended < LIMIT
    assert answered > 20
    assert slowest < 2
    assert server.http.get("/v1/bandits/b/stats").json()["rounds"] == before + answered


def test_a_body_that_arrives_too_slowly_is_refused(server: Server) -> None:
    """A byte now and then does not buy more time."""
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT) as connection:
        connection.sendall(HALF_A_BODY)
        while time.monotonic() - start < LIMIT:
            try:
                connection.sendall(b" ")
            except OSError:
                break
            if select.select([connection], [], [], 0.5)[0]:
                assert connection.recv(65536).startswith(b"HTTP/1.1 408 ")
                break
    assert time.monotonic() - start < LIMIT
