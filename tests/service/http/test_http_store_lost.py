"""The store removed, moved or replaced under a server, and a start where there was one."""

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import run_command
from plain_client import PlainClient
from servers import run_server, wait_until

import latecomer as lc
from latecomer.errors import FileError, StoreError

FRESH = 0.05
"""More than the hundredth of a second for which a look at the files holds."""


def remove(store: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{store}{suffix}").unlink()


def replace(store: Path) -> None:
    other = store.with_name("other.db")
    lc.open(other, dim=2, window="7d").close()
    other.replace(store)


LOSSES: dict[str, Callable[[Path], object]] = {
    "removed": remove,
    "replaced": replace,
    "its folder removed": lambda store: shutil.rmtree(store.parent),
    "its lock removed": lambda store: Path(f"{store}.lock").unlink(),
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "a.db"


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_lost_store_acknowledges_nothing(store: Path, how: str) -> None:
    with run_server(store) as server:
        client = PlainClient(server.port)
        assert client.create("b") == 201
        assert client.decide("b")[0] == 201
        time.sleep(FRESH)
        LOSSES[how](store)
        assert client.request("GET", "/readyz")[0] == 503
        assert [client.decide("b")[0] for _ in range(20)] == [503] * 20
        status, body = client.request("GET", "/readyz")
        assert status == 503
        assert store.name in body["error"]["message"]
        assert str(store.parent) not in body["error"]["message"]  # anybody may ask
        assert client.request("GET", "/v1/bandits/b/stats")[0] == 200  # reads go on
        assert wait_until(lambda: len(server.logged("the store cannot be written")) == 1)
        assert server.stop() == 1
        assert len(server.logged("the store cannot be written")) == 1
        assert "the server ends" in server.output


@pytest.mark.parametrize("how", LOSSES)
def test_a_lost_store_is_noticed_by_the_embedded_store(store: Path, how: str) -> None:
    with lc.open(store, dim=2, window="7d") as bandit:
        bandit.decide([[1.0, 0.0]])
        time.sleep(FRESH)
        LOSSES[how](store)
        for _ in range(20):
            with pytest.raises(StoreError, match=r"a\.db\S* (has been removed|is not the file that was opened)"):
                bandit.decide([[1.0, 0.0]])
        assert bandit.stats().rounds >= 1  # reads go on


def test_under_load_requests_after_the_loss_are_refused(store: Path) -> None:
    answered: list[tuple[float, float, int]] = []
    with run_server(store) as server:
        client, over = PlainClient(server.port), threading.Event()
        assert client.create("b") == 201

        def ask() -> None:
            while not over.is_set():
                began = time.monotonic()
                status = client.decide("b")[0]
                answered.append((began, time.monotonic(), status))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        removing = time.monotonic()
        remove(store)
        lost = time.monotonic()
        time.sleep(0.5)
        over.set()
        for thread in threads:
            thread.join()
        server.kill()
    before = [status for _, ended, status in answered if ended < removing]
    after = [status for began, _, status in answered if began > lost + FRESH]
    assert before
    assert after
    assert set(before) == {201}
    assert set(after) == {503}


def test_an_idle_server_logs_the_loss_and_recovers(store: Path) -> None:
    with run_server(store) as server:
        client = PlainClient(server.port)
        assert client.create("b") == 201
        assert client.decide("b", request_id="first")[0] == 201
        elsewhere = store.rename(store.with_name("elsewhere.db"))
        assert wait_until(lambda: bool(server.logged("the store cannot be written")))
        assert client.decide("b", request_id="second")[0] == 503
        elsewhere.rename(store)
        assert wait_until(lambda: client.decide("b", request_id="second")[0] == 201)
        assert client.request("GET", "/readyz")[0] == 200
        assert server.stop() == 0
        assert len(server.logged("the store can be written again")) == 1
    with lc.open(store, name="b") as bandit:
        assert bandit.stats().rounds == 2


def test_a_removed_write_ahead_log_is_saved_by_a_clean_stop(store: Path) -> None:
    with run_server(store) as server:
        client = PlainClient(server.port)
        assert client.create("b") == 201
        _, first = client.decide("b")
        Path(f"{store}-wal").unlink()
        time.sleep(FRESH)
        assert client.decide("b")[0] == 503
        assert server.stop() == 1
    with lc.open(store, name="b") as bandit:
        assert bandit.convert(first["decision_id"]) is lc.Verdict.ACCEPTED


# ---- a start where there was a store ----


def test_a_missing_store_is_not_created_without_create(store: Path) -> None:
    lc.open(store, dim=2, window="7d").close()
    store.unlink()
    refused = run_command("serve", "--store", str(store), "--port", "0", folder=store.parent)
    assert refused.process.returncode == 1
    assert "--create" in refused.stderr
    assert str(store) in refused.stderr
    for arguments in ({"dim": 2, "window": "7d"}, {}):
        with pytest.raises(FileError, match=r"a\.db is missing, and was a log before.*create=True.*a\.db\.lock"):
            lc.open(store, **arguments)  # type: ignore[arg-type]
    assert not store.exists()
    with run_server(store, "--create") as server:
        assert PlainClient(server.port).create("b") == 201
    with lc.open(store, name="b", create=True) as bandit:  # it is there: nothing is begun anew
        assert bandit.stats().rounds == 0
    store.unlink()
    lc.open(store, dim=2, window="7d", create=True).close()
    store.unlink()
    Path(f"{store}.lock").unlink()
    lc.open(store, dim=2, window="7d").close()


def test_a_left_over_wal_counts_as_an_earlier_store(store: Path) -> None:
    """SQLite would remove it in silence; with the store itself put back, it holds what was acknowledged last."""
    with run_server(store) as server:
        PlainClient(server.port).create("b")
        server.kill()
    Path(f"{store}.lock").unlink()
    elsewhere = store.rename(store.with_name("elsewhere.db"))
    ahead = Path(f"{store}-wal").read_bytes()
    assert ahead
    with pytest.raises(FileError, match=r"is missing, and was a log before.*a\.db-wal"):
        lc.open(store, dim=2, window="7d")
    assert Path(f"{store}-wal").read_bytes() == ahead
    elsewhere.rename(store)
    lc.open(store, name="b").close()
