"""Snapshots on disk: compressed, and read as earlier versions wrote them."""

import zlib
from contextlib import closing
from pathlib import Path

import numpy as np

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion
from latecomer.service.storage.schema import connect
from latecomer.service.storage.snapshots import list_snapshots, read_snapshot
from latecomer.service.store import Store

ROUNDS = 200


def make_store(path: Path) -> None:
    """Write a store with open decisions, half of them converted, and a snapshot at its end."""
    with Store.open(path) as store:
        store.create("b", BanditSpec(dim=2, window="7d"))
        answers = [store.decide("b", np.eye(2) / 2)[0] for _ in range(ROUNDS)]
        store.wait(store.convert("b", [Conversion(answer.decision_id) for answer in answers[::2]])[1])


def read_parts(path: Path) -> list[bytes]:
    with closing(connect(path, write=False)) as connection:
        return [part for (part,) in connection.execute("SELECT data FROM snapshot_part ORDER BY key, part")]


def test_parts_are_compressed(path: Path) -> None:
    make_store(path)
    parts = read_parts(path)
    assert sum(map(len, parts)) < sum(len(zlib.decompress(part)) for part in parts) / 2


def test_parts_of_an_earlier_version_are_read(path: Path) -> None:
    make_store(path)
    with closing(connect(path, write=True)) as connection:
        key = list_snapshots(connection, 1)[-1]
        newest = read_snapshot(connection, key)[1]
        rows = list(connection.execute("SELECT key, part, data FROM snapshot_part"))
        for key_, part, data in rows:
            plain = (zlib.decompress(data), key_, part)
            connection.execute("UPDATE snapshot_part SET data = ? WHERE key = ? AND part = ?", plain)
        assert read_snapshot(connection, key)[1] == newest
    with Store.open(path) as store:
        assert store.stats("b").rounds == ROUNDS
