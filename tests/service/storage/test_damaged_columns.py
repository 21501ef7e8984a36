"""Damage that SQLite does not see: a column that is NULL, a key out of order. It is refused by its row."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from fake_clocks import DAY, FakeClocks, state_of
from store_internals import chain_of, compact_now, sqlite_log

import latecomer as lc
from latecomer.errors import DamagedFileError
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.storage.rows import key_of
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store
from latecomer.service.tools.verify import verify

COLUMNS = ["commits", "count", "rounds", "stamp", "parent", "last_checksum", "checksum", "payload"]
ROUNDS = 60


def decide_one_by_one(store: Store, name: str, rounds: int) -> None:
    """A row for each decision."""
    for _ in range(rounds):
        store.wait(store.decide(name, np.eye(2))[1])


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two bandits in chains 1 and 2, with 1 + 60 rows each, and a snapshot of both at the last."""
    path = tmp_path_factory.mktemp("filled") / "store.db"
    with Store.open(path, clock=FakeClocks()) as store:
        for name in ("shop", "news"):
            store.create(name, BanditSpec(dim=2, window=20, policy="OTFLinTS"))
            decide_one_by_one(store, name, ROUNDS)
    return path


@pytest.fixture
def path(filled: Path, tmp_path: Path) -> Path:
    """A copy of it, to damage."""
    shutil.copytree(filled.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / filled.name


def set_null(path: Path, table: str, column: str, key: int) -> None:
    """Make a column NULL, as a changed byte in a record's header does, whatever the table's definition says."""
    definition = f"SELECT sql FROM sqlite_schema WHERE name = '{table}'"  # noqa: S608
    change = f"UPDATE sqlite_schema SET sql = ? WHERE name = '{table}'"  # noqa: S608
    connection = connect(path, write=True)
    ((strict,),) = connection.execute(definition)
    connection.pragma("writable_schema", True)
    connection.execute(change, (str(strict).replace(" NOT NULL", ""),))
    connection.close()
    connection = connect(path, write=True)
    connection.execute(f"UPDATE {table} SET {column} = NULL WHERE key = ?", (key,))  # noqa: S608
    connection.pragma("writable_schema", True)
    connection.execute(change, (strict,))
    connection.close()


def check_refused(path: Path, name: str, message: str) -> None:
    """One bandit is refused with the message, and the other goes on."""
    (other,) = {"shop", "news"} - {name}
    with Store.open(path, clock=FakeClocks()) as store:
        assert message in store.quarantined[name]
        store.wait(store.decide(other, np.eye(2))[1])
    with pytest.raises(DamagedFileError) as caught:
        lc.open(path, name=name, clock=FakeClocks())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("column", "row"),
    [
        *((column, (30, ROUNDS + 1)[place % 2]) for place, column in enumerate(COLUMNS)),
        *(
            pytest.param(column, (ROUNDS + 1, 30)[place % 2], marks=pytest.mark.soak)
            for place, column in enumerate(COLUMNS)
        ),
    ],
)
def test_a_null_column_is_refused_by_its_row(path: Path, column: str, row: int) -> None:
    connection = connect(path, write=True)
    connection.execute("DELETE FROM snapshot")  # so that every row is read
    connection.close()
    set_null(path, "log", column, key_of(1, row))
    damage = "its checksum does not match" if column == "checksum" else "its columns have the wrong types"
    check_refused(path, "shop", f"row {row} of chain 1 of the log is damaged: {damage}")


@pytest.mark.parametrize("column", COLUMNS)
def test_a_null_column_among_the_open_rounds_is_refused_by_its_row(path: Path, column: str) -> None:
    """The snapshot is whole, and finds its open rounds by the rows' own columns."""
    row = ROUNDS - 5
    set_null(path, "log", column, key_of(1, row))
    check_refused(path, "shop", f"row {row} of chain 1 of the log is damaged: ")


@pytest.mark.parametrize("column", ["oldest", "row_checksum", "checksum"])
def test_a_null_column_of_a_snapshot_leads_to_the_same_state(path: Path, column: str) -> None:
    with Store.open(path, clock=FakeClocks()) as store:
        state = state_of(store, "shop")
    set_null(path, "snapshot", column, key_of(1, ROUNDS + 1))
    with Store.open(path, clock=FakeClocks()) as store:
        assert store.quarantined == {}
        assert state_of(store, "shop") == state


@pytest.mark.parametrize("column", COLUMNS)
def test_compaction_leaves_rows_with_a_null_column(path: Path, column: str) -> None:
    """No open round is in that row, so that the bandit is served; the writer goes on, and health reports the row."""
    set_null(path, "log", column, key_of(1, 20))
    with Store.open(path, clock=FakeClocks()) as store:
        assert store.quarantined == {}
        decide_one_by_one(store, "shop", 10)
        chain_of(store, "shop").compacted_up_to = 0
        compact_now(store)
        decide_one_by_one(store, "shop", 1)
        assert "row 20 of chain 1 of the log is damaged" in (store.health.snapshot_failure or "")
    with pytest.raises(DamagedFileError, match=f"is damaged: NULL value in log.{column}"):
        list(verify(path))


@pytest.mark.parametrize("column", ["rounds", "stamp"])
def test_a_row_with_a_null_column_is_not_pruned(path: Path, column: str) -> None:
    """It is the last that could go: the rounds that have been pruned remain a number."""
    set_null(path, "log", column, key_of(1, 20))
    clocks = FakeClocks()
    clocks.advance(30 * DAY)
    with Store.open(path, clock=clocks, retention="1d", snapshot_every=30) as store:
        decide_one_by_one(store, "shop", 100)
        left = list(sqlite_log(store).reader.execute("SELECT min(key) FROM log WHERE key >> 40 = 1"))
        assert left == [(key_of(1, 20),)]
        assert chain_of(store, "shop").pruned_rounds == 18


def encode_varint(number: int) -> bytes:
    """As SQLite writes numbers below 2^56: seven bits a byte, the first bit set in all but the last."""
    digits = [number & 127]
    while number := number >> 7:
        digits.append(number & 127 | 128)
    return bytes(reversed(digits))


def test_a_key_out_of_order_is_refused_by_its_row(path: Path) -> None:
    """SQLite finds a first row of the chain, and no last one."""
    key, last = key_of(2, ROUNDS + 1), encode_varint(key_of(2, ROUNDS + 1))
    data = path.read_bytes()
    places = [at for at in range(len(data)) if data.startswith(last, at) and 10 <= data[at + len(last)] < 30]
    (at,) = places  # the key, and a header of nine columns: a row of the log
    path.write_bytes(data[:at] + bytes([data[at] & 0x80]) + data[at + 1 :])
    connection, chain = connect(path, write=False), (key_of(2, 0), key)
    ends = [
        next(iter(connection.execute("SELECT min(key) FROM log WHERE key BETWEEN ? AND ?", chain))),
        next(iter(connection.execute("SELECT max(key) FROM log WHERE key BETWEEN ? AND ?", chain))),
    ]
    connection.close()
    assert ends == [(key_of(2, 1),), (None,)]
    check_refused(path, "news", f"row {ROUNDS + 1} of chain 2 of the log is damaged: its key is out of order")
