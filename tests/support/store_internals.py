"""The SQLite log behind a store, for tests that look at rows, chains and connections."""

from latecomer.service.storage.chain import Chain
from latecomer.service.storage.sqlite_log import SQLiteLog
from latecomer.service.store import Store


def sqlite_log(store: Store) -> SQLiteLog:
    """Return a store's log as what it is."""
    assert isinstance(store.log, SQLiteLog)
    return store.log


def chain_of(store: Store, name: str) -> Chain:
    """Return the chain of a bandit."""
    return sqlite_log(store).chains[store.registry.get(name).number]
