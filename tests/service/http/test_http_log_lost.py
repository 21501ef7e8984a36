"""A log line that cannot be written costs that line and nothing else; a writer that dies ends the server."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import fork_server
import pytest
from plain_client import PlainClient
from servers import run_server, wait_until

from latecomer.service.http.logging_setup import LogStream

STOP_LIMIT = 30


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def deaf(store_path: Path, how: str) -> Iterator[tuple[PlainClient, fork_server.ForkedProcess]]:
    """A server whose standard error goes to a full device, or to a pipe whose reader has gone."""
    port = free_port()
    command = ["serve", "--store", str(store_path), "--port", str(port)]
    reader, pipe = os.pipe()
    with os.fdopen(reader) as lines, os.fdopen(pipe, "wb") as writer, Path("/dev/full").open("wb") as full:
        stderr = (full if how == "full" else writer).fileno()
        process = fork_server.start(command, stderr=stderr, environment=dict(os.environ), folder=store_path.parent)
        writer.close()  # the server has the other
        assert how == "full" or "serving" in lines.readline()
    client = PlainClient(port)
    try:
        assert wait_until(lambda: client.is_answered() or process.poll() is not None)
        assert process.poll() is None
        yield client, process
    finally:
        process.kill()
        process.wait(STOP_LIMIT)


@pytest.mark.parametrize("how", ["full", "gone"])
def test_a_log_that_cannot_be_written_does_not_stop_the_server(tmp_path: Path, how: str) -> None:
    """The writer's thread says that commits fail, and that they work again: both lines are lost, and no more."""
    with deaf(tmp_path / "a.db", how) as (client, process):
        assert client.create("b") == 201
        assert client.decide("b")[0] == 201
        unlimited = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4096, unlimited[1]))
        assert client.decide("b")[0] == 503
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
        assert wait_until(lambda: client.decide("b")[0] == 201)
        assert client.request("GET", "/readyz")[0] == 200
        lost = [
            line for line in client.request("GET", "/metrics")[1].splitlines() if line.startswith("latecomer_log_lines")
        ]
        assert len(lost) == 1
        assert float(lost[0].split()[1]) >= 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT) == 0


def drained(reader: int) -> bytes:
    got = b""
    while True:
        try:
            got += os.read(reader, 1 << 16)
        except BlockingIOError:
            return got


def test_lost_log_lines_are_counted_and_reported() -> None:
    """A pipe that is full, and then is not: nothing is raised, and the next line says how many are missing."""
    reader, descriptor = os.pipe()
    os.set_blocking(descriptor, False)
    os.set_blocking(reader, False)
    with os.fdopen(descriptor, "w") as file:
        stream = LogStream(file)
        line = json.dumps({"event": "x" * 9000}) + "\n"  # of pieces that a pipe takes whole, so that one is torn
        whole = -1
        while not stream.lost:
            stream.write(line)
            whole += 1
        stream.write(line)
        assert stream.lost == 2
        got = drained(reader)
        stream.write(line)
        got += drained(reader)
        os.close(reader)
        stream.write(line)  # its reader has gone
    stream.write(line)  # and the stream is closed
    assert stream.lost == 4
    *lines, torn, said, last = got.decode().splitlines(keepends=True)
    assert lines == [line] * whole
    assert line.startswith(torn.rstrip())  # it is ended before another begins
    assert json.loads(said)["event"] == "log lines were lost"
    assert json.loads(said)["lines"] == 2
    assert last == line


BREAKING = """
import asyncio, sys
from latecomer.service.storage.background import Job
from latecomer.service.http.operations import PUBLIC, Operation
from latecomer.service.http.response import Response
from latecomer.service.http.router import Route
from latecomer.service.http.settings import read_settings
from latecomer.service.http.server import serve
from latecomer.service.http.logging_setup import start_log

FAULT = Operation(
    name="fault", method="POST", path="/v1/bandits/{name}/fault", summary="Kill the writer.", scope=PUBLIC, gives=None
)

def extra(context):
    async def kill_writer(request):
        def begin(connection):
            raise LookupError("a fault that nobody foresaw")
        with context.store.log.lock:
            context.store.log.writer.run_after_pending(Job(begin, ("fault", 0)))
        return Response(200, b"{}")
    return [Route(FAULT, kill_writer)]

chosen = read_settings(environment={}, given={"store": sys.argv[2], "port": 0})
asyncio.run(serve(chosen, start_log("info"), extra=extra))
"""


def test_a_dead_writer_ends_the_server(tmp_path: Path) -> None:
    """It cannot do its work any more: a supervisor should start another, which recovers everything."""
    command = [sys.executable, "-c", BREAKING, "serve", str(tmp_path / "a.db")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            assert process.stderr is not None
            client = PlainClient(json.loads(process.stderr.readline())["port"])
            assert wait_until(client.is_answered)
            assert client.create("b") == 201
            status, decided = client.decide("b", request_id="r")
            assert status == 201
            assert client.request("POST", "/v1/bandits/b/fault")[0] == 200
            _, said = process.communicate(timeout=STOP_LIMIT)
        finally:
            process.kill()
    assert process.returncode == 1
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    dead = [line for line in lines if line["event"] == "the writer has died"]
    assert len(dead) == 1
    assert "a fault that nobody foresaw" in json.dumps(dead)
    assert "the server ends" in said
    with run_server(tmp_path / "a.db") as server:
        assert PlainClient(server.port).decide("b", request_id="r") == (201, decided)


def test_a_blocked_log_reader_does_not_block_the_server() -> None:
    """A pipe takes 64 kB: what does not fit is lost, counted, and said once there is room."""
    reader, writer = os.pipe()
    with os.fdopen(writer, "w") as stream, os.fdopen(reader, "rb") as pipe:
        lines = LogStream(stream)
        for number in range(20_000):
            lines.write(json.dumps({"event": "a line", "number": number}) + "\n")
        assert lines.lost > 10_000
        os.set_blocking(reader, False)
        got = pipe.read()
        lines.write(json.dumps({"event": "the last"}) + "\n")
        said = [json.loads(line) for line in (got + pipe.read()).splitlines()]
    assert [line["event"] for line in said[-2:]] == ["log lines were lost", "the last"]
    assert said[-2]["lines"] == lines.lost
    assert said[-3]["number"] == 20_000 - lines.lost - 1
