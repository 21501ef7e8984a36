"""A full disk: changes are refused, reads go on, and when there is room again so does everything; nothing is lost."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import disk_full_worker
import pytest
from servers import Server, error_of

MOUNT, UNMOUNT = "/bin/mount", "/bin/umount"


def run(database: Path, how: str) -> None:
    script = Path(disk_full_worker.__file__)
    done = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, str(script), str(database), how],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(script.parent), *sys.path])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "recovered" in done.stdout


def test_file_size_limit_loses_nothing_acknowledged(tmp_path: Path) -> None:
    run(tmp_path / "store.db", "limit")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    command = [MOUNT, "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:  # noqa: S603
        pytest.skip(
            "mounting a file system needs root; test_file_size_limit_loses_nothing_acknowledged tests the same without"
        )
    yield tmp_path
    subprocess.run([UNMOUNT, str(tmp_path)], check=True)  # noqa: S603


def test_full_disk_loses_nothing_acknowledged(small_disk: Path) -> None:
    run(small_disk / "store.db", "disk")


DECISION = {"actions": [[1.0, 0.0]], "request_id": "before"}


@pytest.mark.parametrize("ended", ["stopped", "killed"])
def test_server_starts_on_a_full_disk(small_disk: Path, ended: str) -> None:
    """Reads go on, changes are refused in the one shape, and with room it goes on by itself.

    Where it was killed, its write-ahead log is there, with room for a few changes yet: those may be taken.
    """
    store_path = small_disk / "store.db"
    server = Server(store_path)
    server.http.put("/v1/bandits/shop", json={"dim": 2, "window": "7d", "policy": "OTFLinUCB"})
    answer = server.http.post("/v1/bandits/shop/decisions", json=DECISION).json()
    server.stop() if ended == "stopped" else server.kill()
    disk_full_worker.fill_up(store_path, "disk")
    server = Server(store_path, LATECOMER_RETENTION="30d")
    try:
        assert server.http.get("/v1/bandits").json()["bandits"][0]["name"] == "shop"
        assert server.http.get("/v1/bandits/shop/stats").json()["rounds"] == 1
        assert server.http.post("/v1/bandits/shop/decisions", json=DECISION).json() == answer
        if ended == "stopped":
            message = error_of(server.http.get("/readyz"))["message"]
            assert "the log cannot be written: store.db cannot be opened" in message
            assert str(small_disk) not in message  # anybody may ask
            assert len(server.logged("the store cannot be written")) == 1
            for change in (
                server.http.post("/v1/bandits/shop/decisions", json={"actions": [[1.0, 0.0]]}),
                server.http.post("/v1/bandits/shop/conversions", json={"decision_id": answer["decision_id"]}),
                server.http.put("/v1/bandits/other", json={"dim": 2, "window": "7d", "policy": "OTFLinUCB"}),
                server.http.delete("/v1/bandits/shop?confirm=shop"),
            ):
                assert change.status_code == 503
                assert "the log cannot be written: store.db cannot be opened" in error_of(change)["message"]
        disk_full_worker.free(store_path, "disk")
        end = time.monotonic() + 30
        while server.http.get("/readyz").status_code != 200 and time.monotonic() < end:
            time.sleep(0.05)
        assert server.http.get("/readyz").json() == {"status": "ready"}
        response = server.http.post("/v1/bandits/shop/conversions", json={"decision_id": answer["decision_id"]})
        assert response.json() == {"verdicts": ["accepted"]}
        assert server.http.post("/v1/bandits/shop/decisions", json={"actions": [[1.0, 0.0]]}).json()["round"] == 2
        assert server.stop() == 0
        assert len(server.logged("the store can be written again")) == len(server.logged("the store cannot be written"))
    finally:
        server.kill()
    server = Server(store_path)
    assert server.http.get("/v1/bandits/shop/stats").json()["rounds"] == 2
    assert server.logged("serving")[0]["retention"] == f"{30 * 86400}s"
    assert server.stop() == 0
