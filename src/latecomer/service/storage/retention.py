"""What may be forgotten: rows behind every snapshot, whose windows have closed and whose retention has passed."""

from collections.abc import Iterator

import apsw

from latecomer.service.bandit.bandit import Bandit
from latecomer.service.storage.request_segments import remove_all
from latecomer.service.storage.rows import LAST, key_of, seq_of
from latecomer.service.storage.snapshots import discarding, keys

_AT_ONCE = 256


def pruning(connection: apsw.Connection, bandit: Bandit, *, now: int, retention: int) -> Iterator[None]:
    """Delete rows, a few at a time, oldest first."""
    stamp = now - retention - (0 if bandit.in_rounds else bandit.span)
    query = "SELECT min(key), min(oldest) FROM snapshot WHERE key BETWEEN ? AND ?"
    ((key, oldest),) = connection.execute(query, (key_of(bandit.number, 0), key_of(bandit.number, LAST)))
    if key is None:
        return
    span = (key_of(bandit.number, 0), key)
    kept = "SELECT min(key) FROM log WHERE key BETWEEN ? AND ? AND NOT (key < ? AND stamp < ? AND rounds < ?)"
    ((first,),) = connection.execute(kept, (*span, key, stamp, oldest))
    decided = "SELECT count(*) FROM (SELECT 1 FROM log WHERE key >= ? AND key < ? AND rounds > 0 LIMIT 1)"
    if not next(iter(connection.execute(decided, (span[0], first or 0))))[0]:
        return  # a log without its first row is not whole any more: not for a row that holds next to nothing
    query = "SELECT key, rounds FROM log WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
    while doomed := list(connection.execute(query, (span[0], first or 0, _AT_ONCE))):
        connection.execute("DELETE FROM log WHERE key BETWEEN ? AND ?", (doomed[0][0], doomed[-1][0]))
        bandit.forgotten = doomed[-1][1]
        yield


def removing(connection: apsw.Connection, number: int) -> Iterator[None]:
    """Everything that is left of a deleted bandit."""
    yield from discarding(connection, number, keys(connection, number))
    yield from remove_all(connection, number)
    span = (key_of(number, 0), key_of(number, LAST))
    while doomed := list(
        connection.execute("SELECT key FROM log WHERE key BETWEEN ? AND ? LIMIT ?", (*span, _AT_ONCE))
    ):
        connection.execute("DELETE FROM log WHERE key BETWEEN ? AND ?", (doomed[0][0], doomed[-1][0]))
        yield


def strangers(connection: apsw.Connection, alive: set[int]) -> list[int]:
    """Chains of bandits that were deleted, and not yet removed."""
    found, key = [], key_of(1, 0)
    tables = ("log", "part", "request_bucket")
    each = " UNION ALL ".join(f"SELECT min(key) AS key FROM {table} WHERE key >= ?1" for table in tables)  # noqa: S608
    query = f"SELECT min(key) FROM ({each})"  # noqa: S608 - our own names
    while (key := next(iter(connection.execute(query, (key,))))[0]) is not None:
        number = (key - seq_of(key)) >> 40
        if number not in alive:
            found.append(number)
        key = key_of(number + 1, 0)
    return found
