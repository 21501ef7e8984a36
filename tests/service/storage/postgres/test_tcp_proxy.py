"""The proxy of the tests: each fault is what it says, and `restore` ends it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tcp_proxy import TcpProxy, Way, run_proxy


class Echo:
    """A server that returns what it gets, after its own name."""

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.ended = threading.Event()
        """Set when a client has ended its stream."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                accepted, _ = self._listener.accept()
                self._sockets.append(accepted)
                threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        with suppress(OSError):
            while data := accepted.recv(1000):
                accepted.sendall(self.name + data)
            self.ended.set()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for accepted in self._sockets:
            accepted.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    server = Echo(b"a:")
    yield server
    server.close()


def connect(proxy: TcpProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=5)


def ask(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    return client.recv(1000)


def test_bytes_pass_in_both_directions(echo: Echo) -> None:
    with run_proxy(echo.port) as proxy, connect(proxy) as client:
        assert ask(client, b"1") == b"a:1"
        assert proxy.connections == 1


@pytest.mark.parametrize("ways", [(), (Way.TO_TARGET,), (Way.TO_CLIENT,)])
def test_dropped_bytes_arrive_after_the_restore(echo: Echo, ways: tuple[Way, ...]) -> None:
    with run_proxy(echo.port) as proxy, connect(proxy) as client:
        assert ask(client, b"1") == b"a:1"
        proxy.drop(*ways)
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(client, b"2")
        with connect(proxy) as other:  # it is accepted, and not answered
            other.settimeout(0.2)
            with pytest.raises(TimeoutError):
                ask(other, b"3")
        proxy.restore()
        client.settimeout(5)
        assert client.recv(1000) == b"a:2"


@pytest.mark.parametrize("ways", [(), (Way.TO_TARGET,), (Way.TO_CLIENT,)])
def test_swallowed_bytes_never_arrive(echo: Echo, ways: tuple[Way, ...]) -> None:
    with run_proxy(echo.port) as proxy, connect(proxy) as client:
        assert ask(client, b"1") == b"a:1"
        proxy.swallow(*ways)
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            ask(client, b"2")
        proxy.restore()
        client.settimeout(5)
        assert ask(client, b"3") == b"a:3"


def test_the_end_of_a_stream_is_swallowed_too(echo: Echo) -> None:
    with run_proxy(echo.port) as proxy, connect(proxy) as client:
        assert ask(client, b"1") == b"a:1"
        proxy.swallow()
        client.shutdown(socket.SHUT_WR)
        assert not echo.ended.wait(0.2)


def test_delayed_bytes_arrive_late(echo: Echo) -> None:
    with run_proxy(echo.port) as proxy, connect(proxy) as client:
        proxy.delay(0.1)
        begun = time.monotonic()
        assert ask(client, b"1") == b"a:1"
        assert time.monotonic() - begun >= 0.2  # there and back


def test_a_stream_to_the_client_that_is_half_closed_ends(echo: Echo) -> None:
    with run_proxy(echo.port) as proxy, connect(proxy) as client:
        assert ask(client, b"1") == b"a:1"
        proxy.half_close(Way.TO_CLIENT)
        assert client.recv(1000) == b""
        client.sendall(b"2")  # the other direction is open
        assert not echo.ended.wait(0.1)


def test_a_stream_to_the_target_that_is_half_closed_ends(echo: Echo) -> None:
    with run_proxy(echo.port) as proxy, connect(proxy) as client:
        assert ask(client, b"1") == b"a:1"
        proxy.half_close(Way.TO_TARGET)
        assert echo.ended.wait(5)


def test_a_cut_resets_every_connection_until_the_restore(echo: Echo) -> None:
    with run_proxy(echo.port) as proxy:
        with connect(proxy) as client:
            assert ask(client, b"1") == b"a:1"
            proxy.cut()
            with pytest.raises(ConnectionResetError):
                ask(client, b"2")
        with pytest.raises(ConnectionResetError), connect(proxy) as client:
            assert ask(client, b"3") != b"", "an end of the stream is no reset"
        proxy.restore()
        with connect(proxy) as client:
            assert ask(client, b"4") == b"a:4"


def test_a_reset_leaves_new_connections_alone(echo: Echo) -> None:
    with run_proxy(echo.port) as proxy:
        with connect(proxy) as client:
            assert ask(client, b"1") == b"a:1"
            proxy.reset()
            with pytest.raises(ConnectionResetError):
                ask(client, b"2")
        with connect(proxy) as client:
            assert ask(client, b"3") == b"a:3"


def test_connections_go_to_the_targets_in_turn_and_past_one_that_is_gone(echo: Echo) -> None:
    other = Echo(b"b:")
    with run_proxy(echo.port, other.port) as proxy:
        names = []
        for _ in range(4):
            with connect(proxy) as client:
                names.append(ask(client, b"1"))
        assert sorted(names) == [b"a:1", b"a:1", b"b:1", b"b:1"]
        other.close()
        for _ in range(4):
            with connect(proxy) as client:
                assert ask(client, b"1") == b"a:1"


def test_new_connections_go_to_the_new_target(echo: Echo) -> None:
    other = Echo(b"b:")
    try:
        with run_proxy(echo.port) as proxy, connect(proxy) as client:
            assert ask(client, b"1") == b"a:1"
            proxy.retarget(("127.0.0.1", other.port))
            assert ask(client, b"2") == b"a:2"
            with connect(proxy) as later:
                assert ask(later, b"3") == b"b:3"
    finally:
        other.close()
