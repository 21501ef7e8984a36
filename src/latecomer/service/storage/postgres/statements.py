"""The statements of a commit: two round trips, whatever the number of events.

The first locks the chain's head, and reads what this replica has not seen: the lock comes first, and each statement
sees what was committed before it. The second appends a row, moves the head and commits. The time is PostgreSQL's.
"""

from typing import Any, NamedTuple

from psycopg import AsyncConnection

from latecomer.service.storage.rows import MAX_SEQ, Row, key_of, parse_row

TAIL = 256
"""Rows that are read under a lock, at most."""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_LOCK = "SELECT seq, checksum, stamp, unsaved FROM head WHERE bandit = %s FOR UPDATE"
_NOW = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
_TAIL = "SELECT * FROM log WHERE key > %s AND key <= %s ORDER BY key LIMIT %s"
_KNOWN = "SELECT digest, seq, round FROM request WHERE bandit = %s AND digest = ANY(%s)"
_ROW_OF = "SELECT * FROM log WHERE key >= %s AND key <= %s ORDER BY key LIMIT 1"
_INSERT = "INSERT INTO log VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
_REQUESTS = (
    "INSERT INTO request SELECT %s, * FROM unnest(%s::bytea[], %s::bigint[], %s::bigint[]) "
    "ON CONFLICT (bandit, digest) DO UPDATE SET seq = excluded.seq, round = excluded.round"
)
_MOVE = "UPDATE head SET seq = %s, checksum = %s, stamp = %s, unsaved = %s WHERE bandit = %s"


class Head(NamedTuple):
    """The last row of a chain, its stamp, and the number of events since the last snapshot was begun."""

    seq: int
    checksum: bytes
    stamp: int
    unsaved: int


class Locked(NamedTuple):
    """A chain that is locked: its head, PostgreSQL's time, the rows after a given one, and rounds by request."""

    head: Head | None
    """None where the bandit is deleted."""
    now: int
    tail: list[Row]
    known: dict[bytes, tuple[int, int]]
    """By the digest of a request, the commit and the round that answered it."""


async def lock_chain(
    connection: AsyncConnection[Any], bandit: int, *, after: int, requests: list[bytes] | None = None
) -> Locked:
    """Begin a transaction that holds the chain's lock."""
    async with connection.pipeline():
        await connection.execute(_BEGIN)
        head = await connection.execute(_LOCK, (bandit,), binary=True)
        now = await connection.execute(_NOW, binary=True)
        tail = await connection.execute(_TAIL, (key_of(bandit, after), key_of(bandit, MAX_SEQ), TAIL), binary=True)
        known = await connection.execute(_KNOWN, (bandit, requests), binary=True) if requests else None
    found = await head.fetchone()
    moment = await now.fetchone()
    assert moment is not None  # noqa: S101 - one row, always
    rows = [parse_row(bandit, columns) for columns in await tail.fetchall()]
    answered = {} if known is None else {digest: (seq, round_) for digest, seq, round_ in await known.fetchall()}
    return Locked(Head(*found) if found else None, moment[0], rows, answered)


async def read_tail(connection: AsyncConnection[Any], bandit: int, *, after: int) -> list[Row]:
    """Return the rows after a commit, without a lock; `TAIL` at most."""
    keys = (key_of(bandit, after), key_of(bandit, MAX_SEQ), TAIL)
    tail = await connection.execute(_TAIL, keys, binary=True)
    return [parse_row(bandit, columns) for columns in await tail.fetchall()]


async def read_row_of(connection: AsyncConnection[Any], bandit: int, seq: int) -> Row | None:
    """Return the row that has a commit; it may have been compacted since."""
    found = await connection.execute(_ROW_OF, (key_of(bandit, seq), key_of(bandit, MAX_SEQ)), binary=True)
    columns = await found.fetchone()
    row = None if columns is None else parse_row(bandit, columns)
    return row if row is not None and row.first <= seq else None


async def insert_row(connection: AsyncConnection[Any], row: Row) -> None:
    """Insert a row."""
    numbers = (key_of(row.bandit, row.seq), row.commits, row.count, row.rounds, row.stamp)
    await connection.execute(_INSERT, (*numbers, row.parent, row.last_checksum, row.checksum, row.payload))


async def move_head(connection: AsyncConnection[Any], row: Row, *, unsaved: int) -> None:
    """Move a chain's head to a row."""
    await connection.execute(_MOVE, (row.seq, row.link, row.stamp, unsaved, row.bandit))


async def commit_row(
    connection: AsyncConnection[Any], row: Row, requests: list[tuple[bytes, int]], *, unsaved: int
) -> None:
    """Append a row to a locked chain, with the rounds of its requests, and commit."""
    async with connection.pipeline():
        await insert_row(connection, row)
        if requests:
            digests, rounds = [digest for digest, _ in requests], [round_ for _, round_ in requests]
            await connection.execute(_REQUESTS, (row.bandit, digests, [row.seq] * len(rounds), rounds))
        await move_head(connection, row, unsaved=unsaved)
        await connection.execute("COMMIT")
