"""Operation of a server: health checks, metrics, logs, settings, and a clean end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from commands import run_command
from processes import children_of, is_running
from prometheus_client.parser import text_string_to_metric_families
from servers import Server, error_of, run_server, wait_until

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.storage.clock import SystemClocks
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store

ROOT = Path(__file__).parents[3]
ROWS = {"actions": [[0.6, 0.0], [0.0, 0.8]]}


def numbers(server: Server) -> dict[tuple[str, str], float]:
    answer = server.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_probes_and_metrics(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server:
        assert server.http.get("/healthz").json() == {"status": "alive"}
        assert server.http.get("/readyz").json() == {"status": "ready"}
        server.http.put("/v1/bandits/b", json={"dim": 2, "window": 100})
        ids = [server.http.post("/v1/bandits/b/decisions", json=ROWS).json()["decision_id"] for _ in range(10)]
        reports = [{"decision_id": decision} for decision in (*ids[:4], ids[0], "no")]
        server.http.post("/v1/bandits/b/conversions", json=reports)
        server.http.post("/v1/bandits/b/decisions", json={})
        seen = numbers(server)
        assert seen["latecomer_decisions_total", "bandit=b"] == 10
        assert seen["latecomer_pending", "bandit=b"] == 6
        for verdict, count in {"accepted": 4, "duplicate": 1, "late": 0, "unknown": 1}.items():
            assert seen["latecomer_verdicts_total", f"bandit=b,of=conversion,verdict={verdict}"] == count
        assert seen["latecomer_delay_bucket", "bandit=b,le=+Inf"] == seen["latecomer_delay_count", "bandit=b"] == 4
        assert seen["latecomer_delay_sum", "bandit=b"] == sum(10 - round_ for round_ in (1, 2, 3, 4))
        assert seen["latecomer_inverse_drift", "bandit=b"] < 1e-8
        assert seen["latecomer_commit_seconds_count", ""] >= 12
        assert seen["latecomer_commit_events_sum", ""] >= 16
        assert seen["latecomer_commit_bytes_total", ""] > 10 * 2 * 8
        route = "method=POST,route=/v1/bandits/{name}/decisions"
        assert seen["latecomer_request_seconds_count", f"{route},status=201"] == 10
        assert seen["latecomer_request_seconds_count", f"{route},status=400"] == 1
        assert 0 < seen["latecomer_request_seconds_sum", f"{route},status=201"] < 60
        assert seen["latecomer_refused_requests_total", "code=invalid"] == 1
        assert seen["latecomer_store_failing", ""] == 0


def test_head_has_no_body_and_options_lists_methods(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server:
        for path in ("/healthz", "/readyz", "/v1/bandits"):
            head, answered = server.http.head(path), server.http.get(path)
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["content-length"] == str(len(answered.content))
        assert server.http.head("/none").status_code == 404
        assert server.http.options("/healthz").headers["allow"] == "GET, HEAD, OPTIONS"
        assert server.http.head("/v1/bandits/b/decisions").status_code == 405
        allowed = {"DELETE", "GET", "HEAD", "OPTIONS", "PUT"}
        for answer in (server.http.options("/v1/bandits/b"), server.http.patch("/v1/bandits/b")):
            assert set(answer.headers["allow"].split(", ")) == allowed


def test_unknown_routes_share_one_metric_label(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server:
        for i in range(20):
            server.http.get(f"/none/{i}")
            server.http.request(f"MADE{i}", "/v1/bandits")
        routes = {labels for name, labels in numbers(server) if name == "latecomer_request_seconds_count"}
        assert len(routes) < 5
        assert "method=other,route=other,status=404" in routes


def test_sigterm_answers_requests_in_flight(tmp_path: Path) -> None:
    """Requests come in on many connections during SIGTERM: each is answered whole, or was never taken."""
    store_path = tmp_path / "a.db"
    answered: list[str] = []
    cut: list[str] = []
    with run_server(store_path, LATECOMER_DRAIN_TIMEOUT="2") as server:
        server.http.put("/v1/bandits/b", json={"dim": 2, "window": 10_000})
        stop = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=server.url, timeout=20) as http:
                while not stop.is_set():
                    try:
                        answer = http.post("/v1/bandits/b/decisions", json=ROWS)
                    except (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError) as error:
                        cut.append(f"{type(error).__name__}: {error}")
                        return
                    assert answer.status_code == 201, answer.text
                    answered.append(answer.json()["decision_id"])

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        assert wait_until(lambda: len(answered) >= 50)
        slow = socket.create_connection(("127.0.0.1", server.port))  # and one that will never be done
        head = b"POST /v1/bandits/b/decisions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        slow.sendall(head + b"Content-Length: 100\r\n\r\n{")
        start = time.monotonic()
        assert server.stop() == 0
        took = time.monotonic() - start
        stop.set()
        for thread in threads:
            thread.join()
        slow.close()
    assert took < 6
    assert server.logged("stopped")
    assert len(set(answered)) == len(answered) >= 50
    with run_server(store_path) as server:
        answer = server.http.post("/v1/bandits/b/conversions", json=[{"decision_id": i} for i in answered])
        assert set(answer.json()["verdicts"]) == {"accepted"}
        assert server.http.get("/v1/bandits/b/stats").json()["rounds"] == len(answered), "it took what it cut off"
    assert len(cut) == len(threads)
    half = [error for error in cut if "incomplete" in error or "without sending complete" in error]
    assert half == [], "an answer that was begun was not finished"


def test_sigterm_does_not_wait_for_a_compiler(tmp_path: Path) -> None:
    """Another process compiles for a new dimension: decisions do not wait for it, nor the end.

    It is held, so that it would take for ever: a server that waits for it does not stop within the limit of `Server`.
    """
    cold = str(tmp_path / "cold")

    def is_compiling(process: int) -> bool:  # and no longer what Popen has forked, for which the server waits
        return b"-c" in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")

    def decide(server: Server) -> None:
        decided = server.http.post("/v1/bandits/b/decisions", json={"actions": np.eye(7).tolist()})
        assert decided.status_code == 201, decided.text

    with run_server(tmp_path / "a.db", LATECOMER_COMPILE="auto", LATECOMER_CACHE_DIR=cold) as server:
        assert server.http.put("/v1/bandits/b", json={"dim": 7, "window": 100}).status_code == 201
        decide(server)
        assert wait_until(lambda: any(map(is_compiling, children_of(server.process.pid))))
        compiling = children_of(server.process.pid)
        try:
            for process in compiling:
                os.kill(process, signal.SIGSTOP)
            decide(server)
            assert all(map(is_running, compiling))
            assert server.stop() == 0
            assert wait_until(lambda: not any(map(is_running, compiling)))
        finally:
            for process in filter(is_running, compiling):
                os.kill(process, signal.SIGKILL)
    assert [said["level"] for said in map(json.loads, server.lines)].count("error") == 0, server.output
    with run_server(tmp_path / "a.db") as server:
        assert server.http.get("/v1/bandits/b/stats").json()["rounds"] == 2


def test_sigterm_answers_a_request_that_takes_too_long(tmp_path: Path) -> None:
    """A commit waits for another process, longer than the drain may: its client gets an error, and tries again."""
    answers: list[httpx.Response] = []
    with run_server(tmp_path / "a.db", LATECOMER_DRAIN_TIMEOUT="1") as server:
        other = connect(tmp_path / "a.db", write=True)
        other.execute("BEGIN IMMEDIATE")

        def create() -> None:
            answers.append(server.http.put("/v1/bandits/b", json={"dim": 2, "window": 100}))

        asking = threading.Thread(target=create)
        asking.start()
        time.sleep(0.5)
        assert server.http.get("/v1/bandits").status_code == 200  # others are served meanwhile
        server.process.terminate()
        asking.join(timeout=20)
        other.close()
    assert answers[0].status_code == 503
    assert error_of(answers[0])["message"].startswith("the server is stopping: ask again")


def test_ctrl_c_exits_cleanly(tmp_path: Path, signals_that_arrive: None) -> None:
    server = Server(tmp_path / "a.db")
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(20) == 0
    server.stop()


def test_every_line_of_the_log_is_json(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db", "--log-level", "debug") as server:
        server.http.put("/v1/bandits/b", json={"dim": 2, "window": 100})
        server.http.delete("/v1/bandits/b?confirm=b")
        server.http.get("/none")
    said = [json.loads(line) for line in server.lines]
    assert all({"event", "level", "timestamp"} <= set(line) for line in said)
    assert [line["event"] for line in said] == ["serving", "bandit created", "bandit deleted", "draining", "stopped"]


def test_a_second_server_on_the_store_or_port_is_refused(tmp_path: Path) -> None:
    with run_server(tmp_path / "a.db") as server:
        ended = run_command("serve", "--store", "a.db", "--port", "0", folder=tmp_path)
        assert ended.process.returncode == 1
        assert str(server.process.pid) in ended.stderr
        port = run_command("serve", "--store", "b.db", "--port", str(server.port), folder=tmp_path)
        assert port.process.returncode == 2
        assert "cannot be bound" in port.stderr


def test_ipv6_loopback_is_served(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    server = Server(tmp_path / "a.db", "--host", "::1", at="[::1]")
    try:
        assert server.http.get("/v1/bandits").json() == {"bandits": []}
    finally:
        assert server.stop() == 0


def test_a_host_name_is_refused(tmp_path: Path) -> None:
    ended = run_command("serve", "--host", "localhost", folder=tmp_path)
    assert ended.process.returncode == 2
    assert json.loads(ended.stderr)["error"] == "host must be an IP address, such as 127.0.0.1; got 'localhost'"


PACKAGES = ["httptools", "structlog", "prometheus_client", "apsw", "uvloop"]
WITHOUT_EACH = """
import asyncio, os, sys
import latecomer.service.bandit.bandit  # and NumPy, once
from latecomer.cli.main import app
packages = sys.argv[1:]
assert not sys.modules.keys() & set(packages), "they need no package of the service"
for package in packages:
    if os.fork() == 0:
        os.dup2(os.open(package, os.O_WRONLY | os.O_CREAT), 2)
        sys.modules[package] = None
        app(["serve"])
    print(package, os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


@pytest.mark.parametrize("packages", [["structlog", "apsw"], pytest.param(PACKAGES, marks=pytest.mark.soak)])
def test_a_missing_package_is_named_with_its_remedy(tmp_path: Path, packages: list[str]) -> None:
    command = [sys.executable, "-c", WITHOUT_EACH, *packages]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path)  # noqa: S603
    assert ended.stdout.splitlines() == [f"{package} 1" for package in packages]
    for package in packages:
        said = (tmp_path / package).read_text()
        assert package in said
        assert "pip install 'latecomer[service]'" in said
        assert "Traceback" not in said


@pytest.mark.parametrize("readers", [240, pytest.param(800, marks=pytest.mark.soak)])
def test_the_news_example_learns(tmp_path: Path, readers: int) -> None:
    source = ROOT / "examples/news.py"
    assert len(source.read_text().splitlines()) <= 60
    command, plain = [sys.executable, str(source), str(readers)], {**os.environ, "LATECOMER_COMPILE": "never"}
    ended = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path, env=plain
    )
    regret = [float(value) for value in re.findall(r"regret a reader ([\d.]+)", ended.stdout)]
    assert len(regret) == 8
    assert sum(regret[4:]) < 0.7 * sum(regret[:4])
    assert "'accepted'" in ended.stdout


def test_a_store_whose_time_is_ahead_is_logged(tmp_path: Path) -> None:
    class Ahead(SystemClocks):
        def wall(self) -> int:
            return super().wall() + 36_500 * 86_400_000_000

        def boot(self) -> str:
            return "another start"

    with Store.open(tmp_path / "a.db", clock=Ahead()) as store:
        store.create("b", BanditSpec(dim=2, window="7d", policy="OTFLinUCB"))
    with run_server(tmp_path / "a.db") as server:
        (said,) = server.logged("the store's time is not the machine's")
        assert said["level"] == "warning"
        assert abs(said["ahead_seconds"] - 36_500 * 86_400) < 600
        assert "latecomer log adjust-clock" in said["remedy"]
    with run_server(tmp_path / "new.db") as server:
        assert not server.logged("the store's time is not the machine's")
