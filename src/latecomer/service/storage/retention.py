"""Retention: delete rows that no snapshot needs and whose window and retention have passed; remove deleted chains."""

from collections.abc import Sequence

from latecomer.service.bandit.bandit import Bandit
from latecomer.service.storage.background import Steps
from latecomer.service.storage.chain import Chain
from latecomer.service.storage.rows import MAX_SEQ, chain_of, key_of
from latecomer.service.storage.snapshots import discard_snapshots, list_snapshots
from latecomer.service.storage.sql import SQLConnection

_ROWS_PER_STEP = 256


def prune_rows(connection: SQLConnection, bandit: Bandit, chain: Chain, *, now: int, retention: int) -> Steps:
    """Delete rows that have passed their retention, oldest first, a few a step."""
    stamp = now - retention - (0 if bandit.in_rounds else bandit.window_span)
    start = key_of(bandit.number, 0)
    query = "SELECT min(key), min(oldest) FROM snapshot WHERE key BETWEEN ? AND ?"
    ((key, oldest),) = connection.execute(query, (start, key_of(bandit.number, MAX_SEQ)))
    if key is None:
        return
    kept = "SELECT min(key) FROM log WHERE key BETWEEN ? AND ? AND (key < ? AND stamp < ? AND rounds < ?) IS NOT TRUE"
    ((first,),) = connection.execute(kept, (start, key, key, stamp, oldest))
    decided = "SELECT count(*) FROM (SELECT 1 FROM log WHERE key >= ? AND key < ? AND rounds > 0 LIMIT 1) AS found"
    if not next(iter(connection.execute(decided, (start, first or 0))))[0]:
        return  # a replay needs the first row: it is not given up for rows that hold next to nothing
    query = "SELECT key, rounds FROM log WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
    while expired := list(connection.execute(query, (start, first or 0, _ROWS_PER_STEP))):
        connection.execute("DELETE FROM log WHERE key BETWEEN ? AND ?", (expired[0][0], expired[-1][0]))
        chain.pruned_rounds = expired[-1][1]
        yield


def remove_chain(connection: SQLConnection, number: int) -> Steps:
    """Remove the snapshots and rows of a deleted bandit, a few rows a step."""
    yield from discard_snapshots(connection, number, list_snapshots(connection, number))
    keys = (key_of(number, 0), key_of(number, MAX_SEQ))
    query = "SELECT key FROM log WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?"
    while expired := list(connection.execute(query, (*keys, _ROWS_PER_STEP))):
        connection.execute("DELETE FROM log WHERE key BETWEEN ? AND ?", (expired[0][0], expired[-1][0]))
        yield


def list_deleted_chains(connection: SQLConnection, alive: set[int], tables: Sequence[str]) -> list[int]:
    """Return the numbers of chains that belong to no bandit and still have something in one of the tables."""
    found, key = [], key_of(1, 0)
    each = " UNION ALL ".join(f"SELECT min(key) AS key FROM {table} WHERE key >= ?" for table in tables)  # noqa: S608
    query = f"SELECT min(key) FROM ({each}) AS first"  # noqa: S608 - our own names
    while (key := next(iter(connection.execute(query, (key,) * len(tables))))[0]) is not None:
        number = chain_of(key)
        if number not in alive:
            found.append(number)
        key = key_of(number + 1, 0)
    return found
