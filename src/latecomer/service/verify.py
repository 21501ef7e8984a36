"""Is a log whole? Every page, every row of every chain, and the state that follows from them."""

from collections.abc import Iterator
from os import PathLike, fspath

import apsw

from latecomer.errors import DamagedFileError
from latecomer.service.bandit import Bandit
from latecomer.service.births import Birth
from latecomer.service.files import check_seals
from latecomer.service.log import DESK, connect, damaged, first_row, rows, unreadable
from latecomer.service.recovery import bandit_of, births
from latecomer.service.request_segments import check as check_requests
from latecomer.service.writer import Heads


def verify(path: str | PathLike[str], *, name: str | PathLike[str] | None = None) -> Iterator[str]:
    """A line for each bandit; then `DamagedFileError`, which names what is not whole and says how to go on.

    A running owner may go on meanwhile. `name` is what to call the file, where it is a copy that has none yet.
    """
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
        damages: dict[str, str] = {}
        for birth in alive.values():
            try:
                yield _verified(connection, birth)
            except (DamagedFileError, UnicodeDecodeError, TypeError) as error:
                damages[birth.name] = str(error)
                yield f"{birth.name}: damaged: {error}"
        if damages:
            raise DamagedFileError(_advice(fspath(name or path), damages, len(alive)))
    except apsw.Error as error:
        raise unreadable(path, error) from error
    finally:
        connection.close()


def _advice(store: str, damages: dict[str, str], bandits: int) -> str:
    """Which bandits are damaged, and the commands with which to go on."""
    lines = [f"{len(damages)} of the {bandits} bandits of {store} are damaged; a server serves the others"]
    for name, damage in damages.items():
        lines += [
            f"{name}: {damage}",
            f"  to have it whole, stop the server, put a copy in the place of {store}, without -wal and -shm files;",
            "  or, with the server stopped, go on with what comes before the damage, and give the rest up:",
            f"    latecomer log export {store} --bandit {name} --out {name}-tables",
            f"    latecomer log replay {store} --bandit {name} --into {name}-rest --partial",
            f"    latecomer log delete {store} --bandit {name} --confirm {name}",
            f"  or give it up while the server runs: DELETE /v1/bandits/{name}?confirm={name}",
        ]
    return "\n".join(lines)


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
