"""Small rows bound into larger ones, so that a log is read as fast where each decision was a commit of its own.

To read a row and check it takes ten microseconds, however little it holds. A bound row has the events of rows that
followed each other, in their order; it takes their place in one transaction. Bound rows never reach across a snapshot,
which stands on the end of a row.
"""

from collections.abc import Iterator, Sequence

import apsw

from latecomer.service.bandit import Bandit
from latecomer.service.log import Row, append, key_of, rows, sealed, seq_of

FULL = 16_000
"""Bytes of events in a bound row, at most: about a page."""
FEW = 8
"""Rows that are worth it."""


def binding(connection: apsw.Connection, bandit: Bandit, *, until: int, to_the_end: bool) -> Iterator[None]:
    """Bind what is small of the rows that have not been looked at, up to number `until`, a bound row at a time.

    Parameters
    ----------
    connection
        The one that writes.
    bandit
        Whose rows; its `bound` says how far it has come.
    until
        The last row to look at.
    to_the_end
        Whether to bind the last ones too where they do not fill a row yet, for others must not be bound with them.
    """
    query = "SELECT key, length(payload) FROM log WHERE key > ? AND key <= ? ORDER BY key"
    span = (key_of(bandit.number, bandit.bound), key_of(bandit.number, until))
    sizes = [(seq_of(key), size) for key, size in connection.execute(query, span)]
    for numbers in neighbours(sizes):
        if numbers[-1] == until and not to_the_end:
            return
        if len(numbers) >= FEW:
            some = list(rows(connection, bandit.number, after=bandit.bound, before=None, until=numbers[-1]))
            with connection:
                connection.execute("DELETE FROM log WHERE key BETWEEN ? AND ?", _keys(some))
                append(connection, bound(some))
        bandit.bound = numbers[-1]
        yield


def neighbours(sizes: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Rows that follow each other and together are not too large.

    >>> list(neighbours([(1, 9_000), (2, 5_000), (3, 5_000), (4, 99_000)]))
    [[1, 2], [3], [4]]
    """
    numbers: list[int] = []
    total = 0
    for number, size in sizes:
        if numbers and total + size > FULL:
            yield numbers
            numbers, total = [], 0
        numbers.append(number)
        total += size
    if numbers:
        yield numbers


def bound(some: Sequence[Row]) -> Row:
    """One row for rows that follow each other."""
    first, last = some[0], some[-1]
    return sealed(
        last.bandit,
        last.seq,
        span=sum(row.span for row in some),
        count=sum(row.count for row in some),
        rounds=last.rounds,
        stamp=last.stamp,
        before=first.before,
        after=last.link,
        payload=b"".join(row.payload for row in some),
    )


def _keys(some: Sequence[Row]) -> tuple[int, int]:
    return key_of(some[0].bandit, some[0].seq), key_of(some[-1].bandit, some[-1].seq)
