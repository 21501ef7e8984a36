"""A start that fails says why in one line of JSON, and two servers never share a port."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from commands import Command
from servers import Server, run_server, wait_until

LIMIT = 60.0


def start(folder: Path, *arguments: str) -> Command:
    return Command("serve", *arguments, folder=folder)


def failure(command: Command) -> dict[str, Any]:
    """The one line that it said."""
    command.wait()
    assert command.stdout == ""
    assert command.stderr.count("\n") == 1, command.stderr
    said: dict[str, Any] = json.loads(command.stderr)
    assert (said["event"], said["level"]) == ("failed", "critical")
    assert said["timestamp"]
    return said


def test_two_servers_that_start_at_once_do_not_share_a_port(tmp_path: Path) -> None:
    """Whoever comes second ends with 2; whoever came first answers alone, and a third takes over after a kill."""
    with run_server(tmp_path / "first.db") as server:
        port = server.port
        assert "cannot be bound" in failure(start(tmp_path, "--store", "late.db", "--port", str(port)))["error"]
        assert not (tmp_path / "late.db").exists()
        server.kill()
    both = [start(tmp_path, "--store", f"{name}.db", "--port", str(port)) for name in "ab"]
    try:
        assert wait_until(lambda: not all(command.is_running() for command in both))
        second, first = sorted(both, key=Command.is_running)
        assert f"port {port} cannot be bound" in failure(second)["error"]
        assert second.process.returncode == 2
        assert first.is_running()
        assert json.loads(first.await_line())["event"] == "serving"
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=LIMIT).status_code == 200
    finally:
        for command in both:
            command.end()
    again = Server(tmp_path / "a.db", port=port)
    assert again.port == port
    assert again.stop() == 0


def test_serving_is_logged_once_connections_are_accepted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "latecomer", "serve", "--store", "a.db", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)  # noqa: S603
    try:
        assert process.stderr is not None
        port = json.loads(process.stderr.readline())["port"]
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=LIMIT).status_code == 200
        process.terminate()
        assert process.wait(LIMIT) == 0  # its memory taken apart, which `fork_server` leaves out
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--port", "70000"), 2, "port"),
        (("--log-level", "loud"), 2, "--log-level must be one of"),
        (("--config", "none.toml"), 2, "--config must be a file that can be read"),
        (("--host", "localhost"), 2, "host must be an IP address, such as 127.0.0.1; got 'localhost'"),
        (("--store", "damaged.db"), 1, "damaged.db"),
        (("--store", "no/folder/a.db"), 1, "no/folder"),
    ],
    ids=["port", "level", "file", "host", "damaged store", "missing folder"],
)
def test_a_start_error_is_a_line_of_json(tmp_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    (tmp_path / "damaged.db").write_bytes(b"not a store at all, and long enough to be looked at" * 100)
    command = start(tmp_path, "--port", "0", *arguments)
    assert message in failure(command)["error"]
    assert command.process.returncode == code
