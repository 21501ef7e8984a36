"""A disk that fills up and is freed again, under a store that decides; run by test_disk_full.py.

Usage: disk_full_worker.py DATABASE limit|disk. With `limit` files may not grow beyond a size; with `disk` another file
takes all the room of the file system that the database is on.
"""

import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
from fake_clocks import state_of

from latecomer.errors import StoreError
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.store import Store

OFFERS = np.eye(2)


def fill_up(database: Path, how: str) -> None:
    """Fill the disk."""
    if how == "limit":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = database.with_name("store.db-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, -1))
        return
    with database.with_name("ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def free(database: Path, how: str) -> None:
    """Free the disk again."""
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    else:
        database.with_name("ballast").unlink()


def main() -> None:
    database, how = Path(sys.argv[1]), sys.argv[2]
    store = Store.open(database)
    store.create("shop", BanditSpec(dim=2, window="7d"))
    acknowledged: dict[str, str] = {}
    first, ticket = store.decide("shop", OFFERS, request_id="first")
    store.wait(ticket)
    fill_up(database, how)
    refused = None
    for i in range(100_000):
        try:
            answer, ticket = store.decide("shop", OFFERS, request_id=f"r{i}")
            store.wait(ticket, timeout=60)
            acknowledged[f"r{i}"] = answer.decision_id
        except StoreError as error:
            refused, reason = i, str(error)
            break
    assert refused is not None, "the disk never filled up"
    assert "the log cannot be written" in reason
    # changes are refused, and change nothing; what is known can be read
    before = state_of(store, "shop")
    for change in (
        lambda: store.decide("shop", OFFERS),
        lambda: store.convert("shop", [Conversion(first.decision_id)]),
    ):
        try:
            change()
        except StoreError:
            continue
        raise SystemExit("a change was taken that cannot be kept")
    assert state_of(store, "shop") == before
    assert store.health.failure
    assert store.decide("shop", OFFERS, request_id="first")[0] == first
    free(database, how)
    deadline = time.monotonic() + 30
    while store.health.failure and time.monotonic() < deadline:
        time.sleep(0.05)
    assert store.health.failure is None, "it did not recover"
    # the refused request is there once, and its retry gets it
    answer, ticket = store.decide("shop", OFFERS, request_id=f"r{refused}")
    store.wait(ticket, timeout=60)
    assert answer.round == refused + 2
    (verdict,), ticket = store.convert("shop", [Conversion(first.decision_id)])
    store.wait(ticket, timeout=60)
    assert verdict.value == "accepted"
    after = state_of(store, "shop")
    store.close()
    with Store.open(database) as store:
        assert state_of(store, "shop") == after
        for request, id_ in acknowledged.items():
            assert store.decide("shop", OFFERS, request_id=request)[0].decision_id == id_
    print(f"refused after {refused}, recovered")


if __name__ == "__main__":
    main()
