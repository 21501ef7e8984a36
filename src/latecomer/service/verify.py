"""Is a log whole? Every page, every row of every chain, and the state that follows from them."""

from collections.abc import Iterator
from os import PathLike

import apsw

from latecomer.errors import DamagedFileError
from latecomer.service.bandit import Bandit
from latecomer.service.births import Birth
from latecomer.service.files import check_seals
from latecomer.service.log import DESK, connect, damaged, first_row, rows, unreadable
from latecomer.service.recovery import bandit_of, births
from latecomer.service.request_segments import check as check_requests
from latecomer.service.writer import Heads


def verify(path: str | PathLike[str]) -> Iterator[str]:
    """A line for each bandit that is whole; `DamagedFileError`, which names what is not. A running owner may go on."""
    connection = connect(path, write=False)
    try:
        connection.execute("BEGIN")  # one view of the file, whatever is written meanwhile
        (answer,) = next(iter(connection.execute("PRAGMA integrity_check(1)")))
        if answer != "ok":
            raise DamagedFileError(f"{path} is damaged: {answer}; restore it from a copy")
        check_seals(connection)
        heads: Heads = {}
        alive, _ = births(connection, heads)
        yield f"{len(alive)} bandits in {heads.get(DESK, (0, b''))[0]} rows of the desk's own chain"
        for birth in alive.values():
            yield _verified(connection, birth)
    except apsw.Error as error:
        raise unreadable(path, error) from error
    finally:
        connection.close()


def _verified(connection: apsw.Connection, birth: Birth) -> str:
    heads: Heads = {}
    recovered = bandit_of(connection, birth, heads)
    check_requests(connection, birth.number)
    oldest, last = first_row(connection, birth.number), heads[birth.number][0]
    first = oldest.first if oldest else 1
    if first == 1 and not _is_same(bandit_of(connection, birth, {}, from_snapshot=False), recovered):
        raise damaged(birth.number, last, "a snapshot leads to another state than the log")
    count = sum(row.count for row in rows(connection, birth.number, after=first - 1, before=None))
    since = "" if first == 1 else f", pruned up to row {first - 1}"
    return f"{birth.name}: rows {first} to {last}, {count} events, {recovered.rounds} rounds{since}"


def _is_same(one: Bandit, other: Bandit) -> bool:
    mine, theirs = one.learner, other.learner
    return (
        mine.V.tobytes() == theirs.V.tobytes()
        and mine.B.tobytes() == theirs.B.tobytes()
        and mine._randomness.state() == theirs._randomness.state()
        and one.ids.known == other.ids.known
        and one.stats() == other.stats()
    )
