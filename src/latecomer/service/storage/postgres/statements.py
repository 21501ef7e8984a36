"""The statements of a commit: two round trips, whatever the number of events.

The first locks the chain's head, and reads what this replica has not seen: the lock comes first, and each statement
sees what was committed before it. The second appends a row, moves the head and commits. The time is PostgreSQL's.

Each round trip is one message of several statements, with numbers and hexadecimal digits for values. Between two
messages PostgreSQL counts the time that a session holds its lock and says nothing, and ends it after `HOLD_SECONDS`;
between the messages of a pipeline it does not.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from psycopg import AsyncConnection

from latecomer.service.bandit.idempotency import LoggedDecision, find_logged_decision
from latecomer.service.storage.postgres.messages import run
from latecomer.service.storage.rows import MAX_SEQ, Row, key_of, make_row_error, parse_row
from latecomer.service.storage.settings_table import parse_setting

TAIL = 256
"""Rows that are read under a lock, at most."""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_NOW = (
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, (SELECT value FROM setting WHERE name = 'shift')"
)


class Head(NamedTuple):
    """The last row of a chain, its stamp, and the number of events since the last snapshot was begun."""

    seq: int
    checksum: bytes
    stamp: int
    unsaved: int


class Locked(NamedTuple):
    """A chain that is locked: its head, the store's time, the rows after a given one, and rounds by request."""

    head: Head | None
    """None where the bandit is deleted."""
    now: int
    """PostgreSQL's time and the shift."""
    shift: int
    """Microseconds by which the store's time is ahead of the calendar: those of the file that it was copied from."""
    tail: list[Row]
    known: dict[bytes, tuple[int, int]]
    """By the digest of a request, the commit and the round that answered it."""


async def lock_chain(
    connection: AsyncConnection[Any], bandit: int, *, after: int, requests: Iterable[bytes] = ()
) -> Locked:
    """Begin a transaction that holds the chain's lock."""
    statements = [
        _BEGIN,
        f"SELECT seq, checksum, stamp, unsaved FROM head WHERE bandit = {bandit:d} FOR UPDATE",  # noqa: S608
        _NOW,
        _select_tail(bandit, after),
    ]
    if asked := list(requests):
        statements.append(_select_requests(bandit, asked))
    _, head, ((now, stored),), tail, *known = await run(connection, statements)
    shift = int(parse_setting("shift", stored)) if stored else 0
    rows = [parse_row(bandit, columns) for columns in tail]
    return Locked(Head(*head[0]) if head else None, now + shift, shift, rows, _by_digest(known[0]) if known else {})


def _select_requests(bandit: int, requests: Iterable[bytes]) -> str:
    digests = ", ".join(map(_bytea, requests))
    return f"SELECT digest, seq, round FROM request WHERE bandit = {bandit:d} AND digest IN ({digests})"  # noqa: S608


def _by_digest(rows: Iterable[Any]) -> dict[bytes, tuple[int, int]]:
    return {digest: (seq, round_) for digest, seq, round_ in rows}


def _bytea(value: bytes) -> str:
    return f"'\\x{value.hex()}'"


def _select_tail(bandit: int, after: int, limit: int = TAIL) -> str:
    first, last = key_of(bandit, after), key_of(bandit, MAX_SEQ)
    return f"SELECT * FROM log WHERE key > {first:d} AND key <= {last:d} ORDER BY key LIMIT {limit:d}"  # noqa: S608


async def read_tail(connection: AsyncConnection[Any], bandit: int, *, after: int) -> list[Row]:
    """Return the rows after a commit, without a lock; `TAIL` at most."""
    (tail,) = await run(connection, [_select_tail(bandit, after)])
    return [parse_row(bandit, columns) for columns in tail]


async def read_row_of(connection: AsyncConnection[Any], bandit: int, seq: int) -> Row | None:
    """Return the row that has a commit; it may have been compacted since."""
    (found,) = await run(connection, [_select_tail(bandit, seq - 1, limit=1)])
    row = parse_row(bandit, found[0]) if found else None
    return row if row is not None and row.first <= seq else None


async def read_known(
    connection: AsyncConnection[Any], bandit: int, dim: int, known: dict[bytes, tuple[int, int]], *, more: set[bytes]
) -> dict[bytes, LoggedDecision]:
    """Return the decisions that answered requests before, by the requests' digests; pruned ones are left out.

    `known` has the places of those that were asked about with the lock; `more` has those that came after it.
    """
    if more:
        (answered,) = await run(connection, [_select_requests(bandit, more)])
        known = known | _by_digest(answered)
    decisions: dict[bytes, LoggedDecision] = {}
    rows = {seq: await read_row_of(connection, bandit, seq) for seq in {seq for seq, _ in known.values()}}
    for digest, (seq, round_) in known.items():
        row = rows[seq]
        if row is not None:
            found = find_logged_decision(row.payload, dim, round_)
            if found is None or found.request != digest:
                raise make_row_error(bandit, row.seq, f"it lacks the request of round {round_}")
            decisions[digest] = found
    return decisions


def insert_row(row: Row) -> str:
    """Return the statement that inserts a row."""
    numbers = (key_of(row.bandit, row.seq), row.commits, row.count, row.rounds, row.stamp)
    texts = (row.parent, row.last_checksum, row.checksum, row.payload)
    return f"INSERT INTO log VALUES ({', '.join([*map(str, numbers), *map(_bytea, texts)])})"  # noqa: S608


def move_head(row: Row, *, unsaved: int) -> str:
    """Return the statement that moves a chain's head to a row."""
    return (
        f"UPDATE head SET seq = {row.seq:d}, checksum = {_bytea(row.link)}, stamp = {row.stamp:d}, "  # noqa: S608
        f"unsaved = {unsaved:d} WHERE bandit = {row.bandit:d}"
    )


def begin_head(row: Row) -> str:
    """Return the statement that makes the head of a new chain."""
    return f"INSERT INTO head VALUES ({row.bandit:d}, {row.seq:d}, {_bytea(row.link)}, {row.stamp:d}, 0)"  # noqa: S608


def end_head(bandit: int) -> str:
    """Return the statement that removes the head of a chain: nothing can be appended to it any more."""
    return f"DELETE FROM head WHERE bandit = {bandit:d}"  # noqa: S608


def _insert_requests(row: Row, requests: Iterable[tuple[bytes, int]]) -> str:
    values = ", ".join(f"({row.bandit:d}, {_bytea(digest)}, {row.seq:d}, {round_:d})" for digest, round_ in requests)
    return (
        f"INSERT INTO request VALUES {values} "  # noqa: S608
        "ON CONFLICT (bandit, digest) DO UPDATE SET seq = excluded.seq, round = excluded.round"
    )


async def commit_row(
    connection: AsyncConnection[Any], row: Row, requests: list[tuple[bytes, int]], *, unsaved: int
) -> None:
    """Append a row to a locked chain, with the rounds of its requests, and commit."""
    noted = [_insert_requests(row, requests)] if requests else []
    await run(connection, [insert_row(row), *noted, move_head(row, unsaved=unsaved), "COMMIT"])
