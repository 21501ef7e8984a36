"""Verify a log: every page, every row of every chain, and the state that follows from them."""

from collections.abc import Iterator
from os import PathLike, fspath

import apsw

from latecomer.errors import DamagedFileError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.storage.pending_commit import Heads
from latecomer.service.storage.recovery import read_descriptors, recover_bandit
from latecomer.service.storage.request_id_segments import check_index
from latecomer.service.storage.rows import STORE_CHAIN, make_row_error, read_first_row, read_remaining_rows
from latecomer.service.storage.schema import connect, make_read_error
from latecomer.service.storage.settings_table import check_settings


def verify(path: str | PathLike[str], *, name: str | PathLike[str] | None = None) -> Iterator[str]:
    """Yield a line for each bandit; then raise `DamagedFileError` where one is damaged, with the commands to go on.

    The store's owner may go on writing. `name` is shown in errors instead of the path, for a copy that has no name yet.
    """
    connection = connect(path, write=False)
    try:
        connection.execute("BEGIN")  # one view of the file, whatever is written meanwhile
        (answer,) = next(iter(connection.execute("PRAGMA integrity_check(1)")))
        if answer != "ok":
            raise DamagedFileError(f"{path} is damaged: {answer}; restore it from a copy")
        check_settings(connection)
        heads: Heads = {}
        alive, _ = read_descriptors(connection, heads)
        yield f"{len(alive)} bandits in {heads.get(STORE_CHAIN, (0, b''))[0]} rows of the store's own chain"
        damages: dict[str, str] = {}
        for descriptor in alive.values():
            try:
                yield _verify_bandit(connection, descriptor)
            except (DamagedFileError, UnicodeDecodeError, TypeError) as error:
                damages[descriptor.name] = str(error)
                yield f"{descriptor.name}: damaged: {error}"
        if damages:
            raise DamagedFileError(_make_advice(fspath(name or path), damages, len(alive)))
    except apsw.Error as error:
        raise make_read_error(path, error) from error
    finally:
        connection.close()


def _make_advice(store_path: str, damages: dict[str, str], bandits: int) -> str:
    """Return which bandits are damaged, and the commands with which to go on."""
    lines = [f"{len(damages)} of the {bandits} bandits of {store_path} are damaged; a server serves the others"]
    for name, damage in damages.items():
        lines += [
            f"{name}: {damage}",
            f"  to have it whole, stop the server, put a copy in the place of {store_path}, without -wal and -shm "
            "files;",
            "  or, with the server stopped, go on with what comes before the damage, and give the rest up:",
            f"    latecomer log export {store_path} --bandit {name} --out {name}-tables",
            f"    latecomer log replay {store_path} --bandit {name} --into {name}-rest --partial",
            f"    latecomer log delete {store_path} --bandit {name} --confirm {name}",
            f"  or give it up while the server runs: DELETE /v1/bandits/{name}?confirm={name}",
        ]
    return "\n".join(lines)


def _verify_bandit(connection: apsw.Connection, descriptor: BanditDescriptor) -> str:
    recovered, _, (last, _) = recover_bandit(connection, descriptor)
    check_index(connection, descriptor.number)
    oldest = read_first_row(connection, descriptor.number)
    first = oldest.first if oldest else 1
    if first == 1 and not _is_same(recover_bandit(connection, descriptor, from_snapshot=False).bandit, recovered):
        raise make_row_error(descriptor.number, last, "a snapshot leads to another state than the log")
    count = sum(row.count for row in read_remaining_rows(connection, descriptor.number))
    since = "" if first == 1 else f", pruned up to row {first - 1}"
    return f"{descriptor.name}: rows {first} to {last}, {count} events, {recovered.rounds} rounds{since}"


def _is_same(one: Bandit, other: Bandit) -> bool:
    mine, theirs = one.policy, other.policy
    return (
        mine.V.tobytes() == theirs.V.tobytes()
        and mine.B.tobytes() == theirs.B.tobytes()
        and mine.rng.state() == theirs.rng.state()
        and one.ids.known == other.ids.known
        and one.stats() == other.stats()
    )
