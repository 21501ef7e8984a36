"""Small rows bound into larger ones, so that a log is read as fast where each decision was a commit of its own.

To read a row and check it takes ten microseconds, however little it holds. A bound row has the events of rows that
followed each other, in their order; it takes their place in one transaction. It never reaches across the end of a row
on which a snapshot stands. Rows that are damaged are left as they are, for whoever reads them to see.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import apsw

from latecomer.errors import DamagedFileError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.storage.rows import Row, append, key_of, make_row, rows, seq_of
from latecomer.service.storage.snapshots import keys

FULL = 16_000
"""Bytes of events in a bound row, at most: about a page."""
FEW = 8
"""Rows that are worth it."""
_ROWS = 512
"""Rows in a bound row, at most."""


class Place(NamedTuple):
    """Where a row is: the first and the last commit that it stands for, and how large it is."""

    first: int
    last: int
    size: int


def plan_compaction(connection: apsw.Connection, bandit: Bandit, *, until: int) -> Iterator[None]:
    """Bind what is small of the rows that have not been looked at, up to number `until`, a bound row at a time.

    Where the last ones do not fill a row yet, they are left for the next time. `bandit.bound` says how far it has come.
    """
    try:
        stops = {seq_of(key) for key in keys(connection, bandit.number)}
        while groups := _groups(connection, bandit, until, stops):
            for group in groups:
                bandit.bound = group[-1].last
                if len(group) >= FEW:
                    _bind(connection, bandit, group[0].first, group[-1].last)
                    break  # the others may be pruned before their turn comes
            yield
    finally:
        bandit.binding = False
    if bandit.damage:
        raise DamagedFileError(bandit.damage)


def _groups(connection: apsw.Connection, bandit: Bandit, until: int, stops: Collection[int]) -> list[list[Place]]:
    """The next rows that have not been looked at, as they are to be bound; those that may grow are not among them."""
    query = "SELECT key - span + 1, key, length(payload) FROM log WHERE key > ? AND key <= ? ORDER BY key LIMIT ?"
    span = (key_of(bandit.number, bandit.bound), key_of(bandit.number, until))
    places = connection.execute(query, (*span, _ROWS))
    found = [Place(seq_of(first), seq_of(last), size) for first, last, size in places]
    groups = list(neighbours(found, stops))
    is_full = len(groups) == 1 and len(found) == _ROWS
    if groups and groups[-1][-1].last not in stops and not is_full:
        groups.pop()
    return groups


def neighbours(found: Sequence[Place], stops: Collection[int] = ()) -> Iterator[list[Place]]:
    """Rows that follow each other and together are not too large; none after one where it must stop.

    >>> places = [Place(1, 1, 9_000), Place(2, 5, 5_000), Place(6, 6, 5_000), Place(7, 7, 5_000), Place(8, 8, 99_000)]
    >>> [[place.last for place in group] for group in neighbours(places, stops=[6])]
    [[1, 5], [6], [7], [8]]
    """
    group: list[Place] = []
    total = 0
    for place in found:
        if group and (total + place.size > FULL or group[-1].last in stops):
            yield group
            group, total = [], 0
        group.append(place)
        total += place.size
    if group:
        yield group


def _bind(connection: apsw.Connection, bandit: Bandit, first: int, last: int) -> None:
    try:
        some = list(rows(connection, bandit.number, after=first - 1, before=None, until=last))
    except DamagedFileError as error:
        bandit.damage = str(error)
        return
    with connection:
        ends = (key_of(bandit.number, first), key_of(bandit.number, last))
        connection.execute("DELETE FROM log WHERE key BETWEEN ? AND ?", ends)
        append(connection, bound(some))


def bound(some: Sequence[Row]) -> Row:
    """One row for rows that follow each other."""
    first, last = some[0], some[-1]
    return make_row(
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
