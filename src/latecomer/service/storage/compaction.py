"""Compaction: consecutive small rows become one, so that a log of single decisions is read as fast as any other.

Reading and checking a row takes ten microseconds, however little it holds. A compacted row has the events of
consecutive rows, in their order; it replaces them in one transaction. It never extends past a row that a snapshot was
taken at. Damaged rows are left as they are, for readers to find.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from latecomer.errors import DamagedFileError
from latecomer.service.storage.background import Steps
from latecomer.service.storage.chain import Chain
from latecomer.service.storage.rows import Row, insert_row, key_of, make_row, read_rows, seq_of
from latecomer.service.storage.snapshots import list_snapshots
from latecomer.service.storage.sql import SQLConnection

MAX_BYTES = 16_000
"""Bytes of events in a compacted row, at most: about a page."""
MIN_ROWS = 8
"""Rows that are worth compacting."""
MAX_ROWS = 512
"""Rows in a compacted row, at most."""


class _RowsChangedError(Exception):
    """The rows to be compacted are not those that were read."""


class RowExtent(NamedTuple):
    """The first and the last commit that a row stands for, and the bytes of its payload."""

    first: int
    last: int
    size: int


def compact(connection: SQLConnection, chain: Chain, *, until: int) -> Steps:
    """Compact the small rows since the last compaction, up to number `until`, one compacted row a step.

    The last rows, where they do not fill a row yet, are left for the next time. `chain.compacted_up_to` advances.
    """
    try:
        boundaries = {seq_of(key) for key in list_snapshots(connection, chain.number)}
        while groups := _plan(connection, chain, until, boundaries):
            for group in groups:
                chain.compacted_up_to = group[-1].last
                if len(group) >= MIN_ROWS:
                    _replace_rows(connection, chain, group[0].first, group[-1].last)
                    break  # the other groups may be pruned before the next step
            yield
    finally:
        chain.is_compacting = False
    if chain.damage:
        raise DamagedFileError(chain.damage)


def _plan(connection: SQLConnection, chain: Chain, until: int, boundaries: Collection[int]) -> list[list[RowExtent]]:
    """Return the next groups of rows to compact; a last group that may still grow is left out."""
    first, size = (
        "CAST(coalesce(key - commits + 1, key) AS BIGINT)",
        "coalesce(length(payload), 0)",
    )  # NULL where damaged
    query = f"SELECT {first}, key, {size} FROM log WHERE key > ? AND key <= ? ORDER BY key LIMIT ?"  # noqa: S608
    keys = (key_of(chain.number, chain.compacted_up_to), key_of(chain.number, until))
    found = connection.execute(query, (*keys, MAX_ROWS))
    extents = [RowExtent(seq_of(first), seq_of(last), size) for first, last, size in found]
    groups = list(group_rows(extents, boundaries))
    is_full = len(groups) == 1 and len(extents) == MAX_ROWS
    if groups and groups[-1][-1].last not in boundaries and not is_full:
        groups.pop()
    return groups


def group_rows(extents: Sequence[RowExtent], boundaries: Collection[int] = ()) -> Iterator[list[RowExtent]]:
    """Group consecutive rows that together have at most `MAX_BYTES`; a group ends at every boundary.

    >>> sizes = [(1, 1, 9_000), (2, 5, 5_000), (6, 6, 5_000), (7, 7, 5_000), (8, 8, 99_000)]
    >>> groups = group_rows([RowExtent(*size) for size in sizes], boundaries=[6])
    >>> [[extent.last for extent in group] for group in groups]
    [[1, 5], [6], [7], [8]]
    """
    group: list[RowExtent] = []
    total = 0
    for extent in extents:
        if group and (total + extent.size > MAX_BYTES or group[-1].last in boundaries):
            yield group
            group, total = [], 0
        group.append(extent)
        total += extent.size
    if group:
        yield group


def _replace_rows(connection: SQLConnection, chain: Chain, first: int, last: int) -> None:
    try:
        rows = list(read_rows(connection, chain.number, after=first - 1, parent=None, until=last))
    except DamagedFileError as error:
        chain.damage = str(error)
        return
    with suppress(_RowsChangedError), connection:
        keys = (key_of(chain.number, first), key_of(chain.number, last))
        deleted = connection.execute("DELETE FROM log WHERE key BETWEEN ? AND ? RETURNING key, checksum", keys)
        if sorted(map(tuple, deleted)) != [(key_of(row.bandit, row.seq), row.checksum) for row in rows]:
            raise _RowsChangedError  # another replica was faster: it is rolled back
        insert_row(connection, join_rows(rows))


def join_rows(rows: Sequence[Row]) -> Row:
    """Return one row that stands for consecutive rows."""
    first, last = rows[0], rows[-1]
    return make_row(
        last.bandit,
        last.seq,
        commits=sum(row.commits for row in rows),
        count=sum(row.count for row in rows),
        rounds=last.rounds,
        stamp=last.stamp,
        parent=first.parent,
        last_checksum=last.link,
        payload=b"".join(row.payload for row in rows),
    )
