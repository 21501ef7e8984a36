"""A disk that fills up and is freed again, under a desk that decides; run by test_disk_full.py.

Usage: filled.py DATABASE limit|disk. With `limit` files may not grow beyond a size; with `disk` another file takes all
the room of the file system that the database is on.
"""

import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
from machines import state_of

from latecomer.errors import StoreError
from latecomer.service.desk import Desk
from latecomer.service.messages import Conversion, Spec

OFFERS = np.eye(2)


def fill_up(database: Path, how: str) -> None:
    """No more room."""
    if how == "limit":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        size = database.with_name("desk.db-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100_000, -1))
        return
    with database.with_name("ballast").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def free(database: Path, how: str) -> None:
    """Room again."""
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
    else:
        database.with_name("ballast").unlink()


def main() -> None:
    database, how = Path(sys.argv[1]), sys.argv[2]
    desk = Desk.open(database)
    desk.create("shop", Spec(dim=2, window="7d"))
    acknowledged: dict[str, str] = {}
    first, ticket = desk.decide("shop", OFFERS, request_id="first")
    desk.wait(ticket)
    fill_up(database, how)
    refused = None
    for i in range(100_000):
        try:
            answer, ticket = desk.decide("shop", OFFERS, request_id=f"r{i}")
            desk.wait(ticket, timeout=60)
            acknowledged[f"r{i}"] = answer.decision_id
        except StoreError as error:
            refused, reason = i, str(error)
            break
    assert refused is not None, "the disk never filled up"
    assert "the log cannot be written" in reason
    # changes are refused, and change nothing; what is known can be read
    before = state_of(desk, "shop")
    for change in (lambda: desk.decide("shop", OFFERS), lambda: desk.convert("shop", [Conversion(first.decision_id)])):
        try:
            change()
        except StoreError:
            continue
        raise SystemExit("a change was taken that cannot be kept")
    assert state_of(desk, "shop") == before
    assert desk.health.failure
    assert desk.decide("shop", OFFERS, request_id="first")[0] == first
    free(database, how)
    deadline = time.monotonic() + 30
    while desk.health.failure and time.monotonic() < deadline:
        time.sleep(0.05)
    assert desk.health.failure is None, "it did not recover"
    # the refused request is there once, and its retry gets it
    answer, ticket = desk.decide("shop", OFFERS, request_id=f"r{refused}")
    desk.wait(ticket, timeout=60)
    assert answer.round == refused + 2
    (verdict,), ticket = desk.convert("shop", [Conversion(first.decision_id)])
    desk.wait(ticket, timeout=60)
    assert verdict.value == "accepted"
    after = state_of(desk, "shop")
    desk.close()
    with Desk.open(database) as desk:
        assert state_of(desk, "shop") == after
        for request, id_ in acknowledged.items():
            assert desk.decide("shop", OFFERS, request_id=request)[0].decision_id == id_
    print(f"refused after {refused}, recovered")


if __name__ == "__main__":
    main()
