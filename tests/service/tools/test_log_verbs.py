"""The commands verify, export, replay and backup."""

import shutil
import threading
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fake_clocks import DAY, HOUR, FakeClocks, state_of, unit_rows
from store_internals import sqlite_log
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app
from latecomer.errors import FileError
from latecomer.service.bandit.events import DECISION, Payload
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion, Revocation
from latecomer.service.storage.rows import read_first_row
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def played(store: Store, machine: FakeClocks, turns: int = 200, policy: str = "OTFLinTS") -> None:
    """Decisions every hour; each third one converts, after 1 to 120 hours, by its order of arrival."""
    generator = np.random.default_rng(2)
    store.create("shop", BanditSpec(dim=2, window="2d", policy=policy, parameters={"seed": 1}))
    due: dict[int, list[tuple[str, float]]] = {}
    for turn in range(turns):
        for id_, value in due.pop(turn, []):
            store.convert("shop", [Conversion(id_, value)] * (turn % 2 + 1))
        answer, ticket = store.decide("shop", unit_rows(generator, 3, 2), ["x", "y", "z"], request_id=f"r{turn}")
        if turn % 3 == 0:
            due.setdefault(turn + int(generator.integers(1, 120)), []).append((answer.decision_id, 0.5))
        if turn % 40 == 7:
            store.revoke("shop", [Revocation(answer.decision_id)])
        machine.advance(HOUR)
        if turn % 5 == 0:
            store.wait(ticket)
    store.wait(ticket)


@pytest.fixture(scope="module")
def played_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, machine = tmp_path_factory.mktemp("played") / "shop.db", FakeClocks()
    with Store.open(path, clock=machine, snapshot_every=100, retention="forever") as store:
        played(store, machine, 130, policy="recommended")
    return path


@pytest.fixture
def store_path(played_store: Path, tmp_path: Path) -> Path:
    shutil.copytree(played_store.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / "shop.db"


def test_verify_reports_a_whole_log(store_path: Path) -> None:
    code, output = run("log", "verify", store_path)
    assert (code, output.splitlines()[-1]) == (0, "whole")
    assert "130 rounds" in output


def test_verify_names_a_damaged_row(store_path: Path) -> None:
    connection = connect(store_path, write=True)
    connection.execute("UPDATE log SET payload = zeroblob(length(payload)) WHERE key = (1 << 40) + 9")
    connection.close()
    code, output = run("log", "verify", store_path)
    assert code == 1
    assert "row 9 of chain 1 of the log is damaged: its checksum does not match" in output


@pytest.mark.parametrize(("file", "why"), [("shop.db", "there is no bandit 'nope'"), ("none.db", "is not there")])
def test_failed_export_creates_nothing(store_path: Path, tmp_path: Path, file: str, why: str) -> None:
    code, output = run("log", "export", store_path.with_name(file), "--bandit", "nope", "--out", tmp_path / "tables")
    assert code == 1
    assert len(output.splitlines()) == 1
    assert why in output
    assert not (tmp_path / "tables").exists()


def test_export_tables_have_the_log(store_path: Path, tmp_path: Path) -> None:
    where = ("--out", tmp_path / "tables", "--reports", tmp_path / "reports")
    output = run("log", "export", store_path, "--bandit", "shop", *where)[1]
    decisions = pl.read_parquet(tmp_path / "tables/*.parquet")
    reports = pl.read_parquet(tmp_path / "reports/*.parquet")
    assert f"{len(decisions)} decisions in {tmp_path / 'tables'} and {len(reports)} reports in" in output
    assert decisions["round"].to_list() == list(range(1, 131))
    with Store.open(store_path) as store:
        known = [store.registry.bandits["shop"].find_round(decision_id) for decision_id in decisions["decision_id"]]
    assert known == decisions["round"].to_list()
    assert reports.join(decisions, on=["decision_id", "round"]).height == reports.height
    assert decisions["decided_at"].diff().drop_nulls().unique().to_list() == [timedelta(hours=1)]
    np.testing.assert_allclose(np.linalg.norm(decisions["chosen_action"].to_numpy(), axis=1), 1.0)
    assert set(decisions["action_id"]) <= {"x", "y", "z"}
    counts = dict(reports.filter(kind="conversion").group_by("verdict").len().iter_rows())
    with Store.open(store_path) as store:
        counted = store.stats("shop").conversions
        B = store.registry.bandits["shop"].policy.B
    assert counts == {verdict: count for verdict, count in counted.items() if count}
    accepted = reports.filter(kind="conversion", verdict="accepted").join(decisions, on="round")
    np.testing.assert_allclose((accepted["value"].to_numpy()[:, None] * accepted["chosen_action"].to_numpy()).sum(0), B)


def oracle(path: Path, tables: Path, window: timedelta) -> lc.OTFLinUCB:
    """The exported events, played through a policy by hand."""
    where = ("--out", tables / "decisions", "--reports", tables / "reports")
    assert run("log", "export", path, "--bandit", "shop", *where)[0] == 0
    decisions = pl.read_parquet(tables / "decisions/*").select("round", at="decided_at", action="chosen_action")
    reports = pl.read_parquet(tables / "reports/*").filter(kind="conversion").unique("round", keep="first")
    policy = lc.OTFLinUCB(2, window)
    events = [(at, 0, round_, action, 0.0) for round_, at, action in decisions.iter_rows()]
    events += [(at, 1, r, None, value) for r, at, value in reports.select("round", "reported_at", "value").iter_rows()]
    for at, kind, round_, action, value in sorted(events, key=lambda event: (event[0], -event[1])):
        if kind:
            policy.convert(round_, value, at=at)
        else:
            policy.decide([action], at=at)
    return policy


def test_replay_with_larger_window_accepts_late_reports(store_path: Path, tmp_path: Path) -> None:
    code, output = run(
        *("log", "replay", store_path, "--bandit", "shop", "--into", "wide", "--window", "10d", "--policy", "OTFLinUCB")
    )
    assert code == 0, output
    expected = oracle(store_path, tmp_path / "tables", timedelta(days=10))
    with Store.open(store_path) as store:
        narrow, wide = store.stats("shop"), store.stats("wide")
        learner = store.registry.bandits["wide"].policy
    assert narrow.conversions["late"] > 0 == wide.conversions["late"]
    assert wide.conversions["accepted"] > narrow.conversions["accepted"]
    assert wide.rounds == narrow.rounds
    np.testing.assert_allclose(learner.V, expected.V, rtol=1e-12)
    np.testing.assert_allclose(learner.B, expected.B, rtol=1e-12)
    assert run("log", "verify", store_path)[0] == 0


def test_replay_without_changes_gives_the_same_bits(store_path: Path) -> None:
    with Store.open(store_path) as store:
        replay(store, "shop", "twin", window="48h")
        mine, theirs = state_of(store, "shop"), state_of(store, "twin")
        query = "SELECT sum(count) FROM log WHERE key >> 40 > 0 GROUP BY key >> 40"
        ((events,), (theirs_,)) = sqlite_log(store).reader.execute(query)
        assert events == theirs_
        first, again = (store.decide(name, np.eye(2))[0] for name in ("shop", "twin"))
    for name in ("V", "B", "generator", "pending", "width"):
        assert mine[name] == theirs[name]
    assert (first.index, first.score, first.round) == (again.index, again.score, again.round)


def test_replayed_bandit_knows_ids_and_requests(store_path: Path) -> None:
    rows = unit_rows(np.random.default_rng(2), 3, 2)
    with Store.open(store_path) as store:
        old = store.decide("shop", rows, ["x", "y", "z"], request_id="r0")[0]
        recent = store.decide("shop", np.eye(2))[0]
        replay(store, "shop", "replayed", window=1000)
        new = store.decide("replayed", rows, ["x", "y", "z"], request_id="r0")[0]
        assert (new.index, new.round, new.action_id, new.score) == (old.index, old.round, old.action_id, old.score)
        verdicts = store.convert("replayed", [Conversion(recent.decision_id)] * 2)[0]
        assert [verdict.value for verdict in verdicts] == ["accepted", "duplicate"]
        replay(store, "replayed", "replayed-twice", window="30d")
        assert store.convert("replayed-twice", [Conversion(recent.decision_id)])[0][0].value == "duplicate"


def test_replay_of_pruned_log_needs_partial(tmp_path: Path) -> None:
    path, machine = tmp_path / "shop.db", FakeClocks()
    with Store.open(path, clock=machine, snapshot_every=40, retention="1d") as store:
        played(store, machine)
        last = store.decide("shop", np.eye(2))[0]
    with Store.open(path, clock=machine, retention="forever") as store:
        whole = store.stats("shop")
        first = read_first_row(sqlite_log(store).reader, 1)
        assert first is not None
        oldest = Payload(first.payload, 2).records(DECISION)["round"][0]
        assert 50 < oldest <= 129  # of 200 hours 3 days stay, and rows that wait for a snapshot
        with pytest.raises(FileError, match="has been pruned"):
            replay(store, "shop", "rest")
        rest = replay(store, "shop", "rest", partial=True)
        assert 72 < rest.rounds < whole.rounds
        assert store.convert("rest", [Conversion(last.decision_id)])[0][0].value == "accepted"
        old, stale = (store.decide("shop", np.eye(2), request_id=name)[0].round for name in ("r0", "r1"))
        assert (old, stale) == (whole.rounds + 1, whole.rounds + 2)  # their answers have been pruned
    assert run("log", "verify", path)[0] == 0


def test_pruning_waits_for_window_and_retention(tmp_path: Path) -> None:
    """Whatever the retention, an open decision's row stays: the snapshot needs it."""
    path, machine = tmp_path / "shop.db", FakeClocks()
    with Store.open(path, clock=machine, snapshot_every=10, retention="0s") as store:
        store.create("shop", BanditSpec(dim=2, window="30d"))
        ids = [store.decide("shop", np.eye(2))[0].decision_id for _ in range(100)]
        machine.advance(60 * DAY)  # closed by time, and not yet by a decision
    for _ in range(3):
        with Store.open(path, clock=machine, snapshot_every=10, retention="0s") as store:
            assert store.stats("shop").pending == 100
            store.convert("shop", [Conversion(id_) for id_ in ids])
    with Store.open(path, clock=machine, snapshot_every=10, retention="0s") as store:
        for _ in range(50):
            store.wait(store.decide("shop", np.eye(2))[1])
    with Store.open(path, clock=machine) as store:
        ((first,),) = sqlite_log(store).reader.execute("SELECT min(rounds) FROM log WHERE key >> 40 = 1")
        assert first == 100  # the reports of the last rows have come within a window
        assert store.stats("shop").rounds == 150


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--bandit", "nobody", "--into", "x"), 1, "there is no bandit 'nobody'"),
        (("--bandit", "shop", "--into", "shop"), 2, "needs a name of its own"),
        (("--bandit", "shop", "--into", "x", "--parameters", "[1]"), 2, "--parameters must be a JSON object"),
        (("--bandit", "shop", "--into", "x", "--window", "soon"), 2, "window must be a whole number and one of"),
    ],
)
def test_invalid_replays_are_refused(store_path: Path, arguments: tuple[str, ...], code: int, message: str) -> None:
    assert run("log", "replay", store_path, *arguments)[0] == code
    assert message in run("log", "replay", store_path, *arguments)[1]


def test_backup_of_a_store_in_use(store_path: Path, tmp_path: Path) -> None:
    stop, target = threading.Event(), tmp_path / "copy.db"
    with Store.open(store_path, retention="forever") as store:

        def decide() -> None:
            while not stop.is_set():
                store.wait(store.decide("shop", np.eye(2))[1])

        thread = threading.Thread(target=decide)
        thread.start()
        code, output = run("backup", store_path, target)
        stop.set()
        thread.join()
        rounds = store.stats("shop").rounds
    assert code == 0, output
    assert run("log", "verify", target)[0] == 0
    with Store.open(target) as copy:
        assert 130 <= copy.stats("shop").rounds <= rounds
        copy.decide("shop", np.eye(2))
    code, output = run("backup", store_path, target)
    assert (code, "is there already" in output) == (2, True)
    assert not list(tmp_path.glob(".copy*"))
    code, output = run("backup", store_path, tmp_path / "none" / "copy.db")  # into a folder that is not there
    assert (code, "copy.db could not be written: No such file or directory" in " ".join(output.split())) == (1, True)


def test_log_verbs_refuse_a_missing_store(tmp_path: Path) -> None:
    for arguments in (
        ("log", "verify", tmp_path / "x"),
        ("log", "export", tmp_path / "x", "--bandit", "a", "--out", tmp_path / "z"),
        ("log", "replay", tmp_path / "x", "--bandit", "a", "--into", "b"),
        ("backup", tmp_path / "x", tmp_path / "y"),
    ):
        code, output = run(*arguments)
        assert (code, "is not there" in output) == (1, True), arguments
    assert not (tmp_path / "x").exists()


def test_replayed_bandit_is_pruned_from_its_first_row(tmp_path: Path) -> None:
    """Its first row is younger than what was replayed into it."""
    path, machine = tmp_path / "shop.db", FakeClocks()
    with Store.open(path, clock=machine, retention="forever") as store:
        played(store, machine)
        replay(store, "shop", "replayed")
    for _ in range(3):
        with Store.open(path, clock=machine, retention="1s") as store:
            store.decide("replayed", np.eye(2))
    with Store.open(path, clock=machine, retention="1s") as store:
        ((first,),) = sqlite_log(store).reader.execute("SELECT min(key) & 0xffffffff FROM log WHERE key >> 40 = 2")
        assert first > 2
        assert store.stats("replayed").rounds == 203
    assert run("log", "verify", path)[0] == 0


def test_replay_prunes_nothing(tmp_path: Path) -> None:
    """The command does not know the server's retention: two years later, the log of a week is still whole."""
    path, machine = tmp_path / "old.db", FakeClocks(1_700_000_000 * 1_000_000)
    with Store.open(path, clock=machine, retention="forever") as store:
        played(store, machine, 50)
    before = [line for line in run("log", "verify", path)[1].splitlines() if line.startswith("shop:")]
    for name in ("wide", "wider"):
        code, output = run("log", "replay", path, "--bandit", "shop", "--into", name, "--window", "30d")
        assert (code, output.split(",")[0]) == (0, f"{name}: 50 rounds")
    assert [line for line in run("log", "verify", path)[1].splitlines() if line.startswith("shop:")] == before


def test_export_refuses_a_folder_with_tables(store_path: Path, tmp_path: Path) -> None:
    export = ("log", "export", store_path, "--bandit", "shop", "--out", tmp_path)
    assert run(*export)[0] == 0
    before = sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir())
    code, output = run(*export)
    assert (code, "--out must be a folder without earlier tables" in " ".join(output.split())) == (2, True)
    assert sorted((path.name, path.stat().st_mtime_ns) for path in tmp_path.iterdir()) == before
