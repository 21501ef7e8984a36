"""Verify a log: every page, every row of every chain, and the state that follows from them."""

from collections.abc import Iterator
from os import PathLike, fspath

import apsw

from latecomer.errors import DamagedFileError
from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.descriptor import BanditDescriptor
from latecomer.service.bandit.events import Payload
from latecomer.service.storage.pending_commit import Heads
from latecomer.service.storage.postgres.address import hide_secrets, is_address
from latecomer.service.storage.postgres.no_index import open_no_index
from latecomer.service.storage.recovery import make_index_opener, read_descriptors, recover_bandit
from latecomer.service.storage.request_id_segments import check_index
from latecomer.service.storage.rows import STORE_CHAIN, make_row_error, read_first_row, read_remaining_rows
from latecomer.service.storage.settings_table import check_settings
from latecomer.service.storage.sql import SQLConnection
from latecomer.service.tools.reader import open_reader


def verify(path: str | PathLike[str], *, name: str | PathLike[str] | None = None) -> Iterator[str]:
    """Yield a line for each bandit; then raise `DamagedFileError` where one is damaged, with the commands to go on.

    The store's owner may go on writing. `name` is shown in errors instead of the path, for a copy that has no name yet.
    """
    with open_reader(path) as connection:
        check_pages(connection, path)
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
            raise DamagedFileError(_make_advice(hide_secrets(fspath(name or path)), damages, len(alive)))


def check_pages(connection: SQLConnection, path: str | PathLike[str]) -> None:
    """Check the pages of a SQLite file; PostgreSQL checks its own."""
    if isinstance(connection, apsw.Connection):
        (answer,) = next(iter(connection.execute("PRAGMA integrity_check(1)")))
        if answer != "ok":
            raise DamagedFileError(f"{path} is damaged: {answer}; restore it from a copy")


def _make_advice(store_path: str, damages: dict[str, str], bandits: int) -> str:
    """Return which bandits are damaged, and the commands with which to go on."""
    lines = [f"{len(damages)} of the {bandits} bandits of {store_path} are damaged; a server serves the others"]
    whole = f"stop the server, put a copy in the place of {store_path}, without -wal and -shm files;"
    rest = "or, with the server stopped, go on with what comes before the damage, and give the rest up:"
    if is_address(store_path):
        whole = "restore a dump into a new database, verify that, and start the replicas on it;"
        rest = "or go on with what comes before the damage, and give the rest up:"
    for name, damage in damages.items():
        lines += [
            f"{name}: {damage}",
            f"  to have it whole, {whole}",
            f"  {rest}",
            f"    latecomer log export {store_path} --bandit {name} --out {name}-tables",
            f"    latecomer log replay {store_path} --bandit {name} --into {name}-rest --partial",
            f"    latecomer log delete {store_path} --bandit {name} --confirm {name}",
            f"  or give it up while the server runs: DELETE /v1/bandits/{name}?confirm={name}",
        ]
    return "\n".join(lines)


def _verify_bandit(connection: SQLConnection, descriptor: BanditDescriptor) -> str:
    open_index = make_index_opener(connection) if isinstance(connection, apsw.Connection) else open_no_index
    recovered, _, (last, link) = recover_bandit(connection, descriptor, open_index=open_index)
    if isinstance(connection, apsw.Connection):
        check_index(connection, descriptor.number)
    else:
        _check_tables(connection, descriptor, last, link)
    oldest = read_first_row(connection, descriptor.number)
    first = oldest.first if oldest else 1
    if first == 1 and not _is_same(
        recover_bandit(connection, descriptor, open_index=open_index, from_snapshot=False).bandit, recovered
    ):
        raise make_row_error(descriptor.number, last, "a snapshot leads to another state than the log")
    count = sum(row.count for row in read_remaining_rows(connection, descriptor.number))
    since = "" if first == 1 else f", pruned up to row {first - 1}"
    return f"{descriptor.name}: rows {first} to {last}, {count} events, {recovered.rounds} rounds{since}"


def _check_tables(connection: SQLConnection, descriptor: BanditDescriptor, last: int, link: bytes) -> None:
    """Check what PostgreSQL has beside the rows: the head of the chain, and the rounds of requests."""
    number = descriptor.number
    heads = connection.execute("SELECT seq, checksum FROM head WHERE bandit = ?", (number,))
    if [(seq, bytes(checksum)) for seq, checksum in heads] != [(last, link)]:
        raise make_row_error(number, last, "the head of the chain is another")
    first = read_first_row(connection, number)
    query = "SELECT * FROM request WHERE bandit = ? AND seq >= ? ORDER BY seq, round"
    table = iter(connection.execute(query, (number, first.first if first else 0)))
    entry = next(table, None)
    for seq, round_, digest, span in _list_requests(connection, descriptor):
        if entry is not None and entry[2] < span.start:
            break  # its row has been passed
        if entry is not None and (bytes(entry[1]), entry[3]) == (digest, round_) and entry[2] in span:
            entry = next(table, None)
        elif not _is_answered_later(connection, number, digest, round_):
            raise make_row_error(number, seq, f"the request of round {round_} cannot be found")
    if entry is not None:
        raise make_row_error(number, entry[2], f"it lacks the request of round {entry[3]}")


def _list_requests(connection: SQLConnection, descriptor: BanditDescriptor) -> Iterator[tuple[int, int, bytes, range]]:
    """Yield the row, the round and the digest of each request of the log, and the commits that the row stands for."""
    for row in read_remaining_rows(connection, descriptor.number):
        decided = Payload(row.payload, descriptor.spec.dim).records(events.DECISION_WITH_REQUEST)
        for digest, round_ in zip(decided["request"].tolist(), decided["round"].tolist(), strict=True):
            yield row.seq, round_, digest, range(row.first, row.seq + 1)


def _is_answered_later(connection: SQLConnection, number: int, digest: bytes, round_: int) -> bool:
    """Tell whether the table has a later answer to the same request: its id was used again."""
    query = "SELECT round FROM request WHERE bandit = ? AND digest = ?"
    return any(later > round_ for (later,) in connection.execute(query, (number, digest)))


def _is_same(one: Bandit, other: Bandit) -> bool:
    mine, theirs = one.policy, other.policy
    one.count_notes()
    other.count_notes()
    return (
        mine.V.tobytes() == theirs.V.tobytes()
        and mine.B.tobytes() == theirs.B.tobytes()
        and one.ids.known == other.ids.known
        and [policy.rng.state() for policy in one.policies] == [policy.rng.state() for policy in other.policies]
        and all(
            own.theta_hat.tobytes() == others.theta_hat.tobytes()
            for own, others in zip(one.policies, other.policies, strict=True)
        )
        and one.stats() == other.stats()
        and one.monitor.to_dict() == other.monitor.to_dict()
    )
