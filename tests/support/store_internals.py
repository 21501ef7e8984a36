"""The SQLite log behind a store, for tests that look at rows, chains and connections."""

import time

from latecomer.service.storage.chain import Chain
from latecomer.service.storage.sqlite_log import SQLiteLog
from latecomer.service.store import Store


def sqlite_log(store: object) -> SQLiteLog:
    """Return a store's log as what it is."""
    assert isinstance(store, Store)
    assert isinstance(store.log, SQLiteLog)
    return store.log


def chain_of(store: Store, name: str) -> Chain:
    """Return the chain of a bandit."""
    return sqlite_log(store).chains[store.registry.get(name).number]


def compact_now(store: Store, name: str = "shop") -> None:
    """Compact a bandit's small rows now, and wait for it."""
    chain = chain_of(store, name)
    with store.log.lock:
        sqlite_log(store).maintenance.compact(chain)
    for _ in range(2000):
        if not chain.is_compacting:
            return
        time.sleep(0.005)
    raise AssertionError("the compaction takes more than ten seconds")
