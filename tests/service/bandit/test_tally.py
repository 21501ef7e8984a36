"""The tally equals a count of the events one by one, live, in a replay and after a restart."""

import itertools
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import apsw
import msgspec
import numpy as np
import pytest
from fake_clocks import DAY, HOUR, SECOND, FakeClocks

from latecomer.service.bandit.tally.columns import Column
from latecomer.service.bandit.tally.exact_sums import join_parts
from latecomer.service.bandit.tally.open_rounds import UNIT
from latecomer.service.bandit.tally.tally import MOST_IDS, NO_ID, OTHER_IDS, Tally
from latecomer.service.bandit.tally.time_buckets import MOST, WIDTHS, TimeBuckets
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion, Revocation
from latecomer.service.storage import snapshots
from latecomer.service.store import Store

SPEC = BanditSpec(dim=3, window="2h", parameters={"control": {"share": 0.2, "policy": "uniform"}, "seed": 1})
IDS = ["red", "green", "blue"]


class Oracle:
    """Every event by itself, in plain lists."""

    def __init__(self) -> None:
        self.decisions: list[dict[str, Any]] = []
        self.arrivals: list[int] = []
        self.revocations: list[int] = []

    def bucket(self, stamps: list[int], width: int) -> Counter[int]:
        return Counter(stamp // (SECOND * width) for stamp in stamps)


def play(store: Store, clocks: FakeClocks, rounds: int, seed: int) -> Oracle:
    """Decide, convert and revoke at random; return every event."""
    rng, oracle = np.random.default_rng(seed), Oracle()
    open_ids: list[int] = []
    for _ in range(rounds):
        clocks.advance(int(rng.exponential(20 * SECOND)))
        answer, _ = store.decide("b", np.eye(3), IDS)
        stamp = store.read_bandit("b").stamp
        oracle.decisions.append({"answer": answer, "stamp": stamp, "value": 0.0, "converted": False})
        open_ids.append(len(oracle.decisions) - 1)
        if rng.random() < 0.3:
            number, value = int(rng.choice(open_ids[-200:])), float(rng.choice([1.0, 0.25, 0.0]))
            decision = oracle.decisions[number]
            verdicts, _ = store.convert("b", [Conversion(decision["answer"].decision_id, value)])
            if verdicts[0].name == "ACCEPTED":
                decision |= {"value": value, "converted": True}
                oracle.arrivals.append(store.read_bandit("b").stamp)
        if rng.random() < 0.05:
            decision = oracle.decisions[int(rng.choice(open_ids[-100:]))]
            verdicts, _ = store.revoke("b", [Revocation(decision["answer"].decision_id)])
            if verdicts[0].name == "ACCEPTED":
                decision |= {"value": 0.0, "converted": False}
                oracle.revocations.append(store.read_bandit("b").stamp)
    return oracle


def check_against(tally: Tally, oracle: Oracle, oldest: int) -> None:
    buckets, width = tally.buckets, tally.buckets.width
    stamps = [decision["stamp"] for decision in oracle.decisions]

    def column(number: int) -> dict[int, int]:
        return {buckets.origin + i: int(n) for i, n in enumerate(buckets.counts[:, number]) if n}

    def of(wanted: Any) -> list[int]:
        return [decision["stamp"] for decision in oracle.decisions if wanted(decision)]

    assert column(Column.DECISIONS) == oracle.bucket(stamps, width)
    assert column(Column.CONTROLS) == oracle.bucket(of(lambda d: d["answer"].is_control), width)
    assert column(Column.ARRIVED) == oracle.bucket(oracle.arrivals, width)
    assert column(Column.REVOKED) == oracle.bucket(oracle.revocations, width)
    assert column(Column.CREDITED) == oracle.bucket(of(lambda d: d["converted"]), width)
    both = of(lambda d: d["converted"] and d["answer"].is_control)
    assert column(Column.CONTROLS_CREDITED) == oracle.bucket(both, width)
    assert tally.value == sum(d["value"] for d in oracle.decisions)
    chosen = [d["answer"].propensity for d in oracle.decisions if not d["answer"].is_control]
    assert buckets.counts[:, Column.PROPENSITIES].sum() / UNIT == pytest.approx(sum(chosen), abs=1e-6)
    assert buckets.counts[:, Column.EXPLORED].sum() == sum(p < 0.5 for p in chosen)
    for label, slot in tally.slots.items():
        mine = of(lambda d, label=label: d["answer"].action_id == label)
        assert tally.choices.counts[:, slot].sum() == len(mine)
        credited = [d for d in oracle.decisions if d["answer"].action_id == label and d["converted"]]
        assert tally.credited_by_slot[slot] == len(credited)
    for arm, is_control in zip(tally.closed[:2].tolist(), (False, True), strict=True):
        closed = [d for d in oracle.decisions[: oldest - 1] if d["answer"].is_control == is_control]
        assert arm[:2] == [len(closed), sum(d["converted"] for d in closed)]
        assert join_parts(arm[2:]) == sum(d["value"] for d in closed)


def tally_of(store: Store) -> tuple[dict[str, Any], int]:
    bandit = store.read_bandit("b")
    bandit.count_notes()
    return bandit.tally.to_dict(), int(bandit.policy.state.number("oldest"))


@pytest.mark.parametrize(("window", "rounds"), [("20min", 150), pytest.param("2h", 450, marks=pytest.mark.soak)])
def test_tally_equals_a_count_one_by_one_and_survives(tmp_path: Path, window: str, rounds: int) -> None:
    """Decisions come 20 seconds after each other, so that the window has closed for some ninety of them."""
    clocks = FakeClocks()
    with Store.open(tmp_path / "a.db", clock=clocks, retention="forever") as store:
        store.create("b", msgspec.structs.replace(SPEC, window=window))
        oracle = play(store, clocks, rounds, seed=0)
        live, oldest = tally_of(store)
        assert oldest > 50
        check_against(store.read_bandit("b").tally, oracle, oldest)
    with Store.open(tmp_path / "a.db", clock=clocks) as store:  # from a snapshot
        assert tally_of(store) == (live, oldest)
    with apsw.Connection(str(tmp_path / "a.db")) as connection:
        connection.execute("DELETE FROM snapshot; DELETE FROM snapshot_part")
    with Store.open(tmp_path / "a.db", clock=clocks) as store:  # from every row
        assert tally_of(store) == (live, oldest)


def test_snapshot_of_an_earlier_version_begins_the_tally_later(tmp_path: Path, monkeypatch: Any) -> None:
    class Earlier(msgspec.Struct):
        policy: bytes
        indexed_rounds: int
        secrets: list[tuple[int, bytes]]
        counters: dict[str, list[int]]
        stamp: int
        compacted_up_to: int

    encode = snapshots.SnapshotCopy.encode
    dropped = lambda copy: msgspec.msgpack.encode(msgspec.msgpack.decode(encode(copy), type=Earlier))  # noqa: E731
    clocks = FakeClocks()
    with monkeypatch.context() as patched:
        patched.setattr(snapshots.SnapshotCopy, "encode", dropped)
        with Store.open(tmp_path / "a.db", clock=clocks) as store:
            store.create("b", SPEC)
            play(store, clocks, 60, seed=0)
            old = store.decide("b", np.eye(3), IDS)[0]
    with Store.open(tmp_path / "a.db", clock=clocks) as store:
        bandit = store.read_bandit("b")
        assert (bandit.tally.first_round, bandit.rounds) == (62, 61)
        store.convert("b", [Conversion(old.decision_id)])  # its decision is not counted, its arrival is
        new = store.decide("b", np.eye(3), IDS)[0]
        store.convert("b", [Conversion(new.decision_id)])
        bandit.count_notes()
        total = bandit.tally.buckets.counts.sum(axis=0)
        assert [total[Column.DECISIONS], total[Column.ARRIVED], total[Column.CREDITED]] == [1, 2, 1]


def test_buckets_do_not_depend_on_groups() -> None:
    rng = np.random.default_rng(0)
    stamps = np.sort(rng.integers(0, 40 * DAY, 500)) + 1_700_000_000 * SECOND
    stamps[:100] = stamps[0] + np.arange(100) * SECOND
    stamps.sort()
    whole, single = TimeBuckets(1), TimeBuckets(1)
    whole.cover(int(stamps[0]), int(stamps[-1]))
    whole.add(stamps, 0)
    for stamp in stamps:
        single.cover(int(stamp), int(stamp))
        single.add(np.array([stamp]), 0)
        assert len(single.counts) <= MOST
    assert (whole.width, whole.origin, whole.counts.tolist()) == (single.width, single.origin, single.counts.tolist())
    assert whole.counts.sum() == 500


@pytest.mark.parametrize(
    ("span", "width"),
    [(10 * SECOND, 1), (HOUR, 60), (7 * DAY, 3 * 3600), (90 * DAY, 86_400), (3000 * DAY, 364 * 86_400)],
)
def test_width_is_the_least_that_fits(span: int, width: int) -> None:
    buckets = TimeBuckets(1)
    buckets.cover(0, span)
    assert buckets.width == width
    assert len(buckets.counts) == span // SECOND // buckets.width + 1


def test_widths_divide_each_other() -> None:
    assert all(later % earlier == 0 for earlier, later in itertools.pairwise(WIDTHS))


def test_ids_beyond_the_most_are_counted_together() -> None:
    tally = Tally()
    for i in range(301):
        tally.note_decision(SECOND * i, 1.0, f"a{i}" if i < 300 else None)
    tally.count_notes(1)
    assert len(tally.slots) == MOST_IDS
    assert tally.choices.counts[:, OTHER_IDS].sum() == 300 - MOST_IDS
    assert tally.choices.counts[:, NO_ID].sum() == 1


def make_tally(values: Any) -> Tally:
    tally, rounds = Tally(), np.arange(1, len(values) + 1)
    for i in range(len(values)):
        tally.note_decision(SECOND * i, 1.0, None)
    tally.note_conversions(rounds, values, np.zeros(len(values), np.int64), SECOND * 1000)
    tally.count_notes(1)
    return tally


@pytest.mark.parametrize("scale", [1.0, 200.0, 1e9, 1e12])
def test_sums_of_values_are_exact_in_every_order(scale: float) -> None:
    values = np.random.default_rng(0).integers(1, 20_000, 300) / 100.0 / max(scale, 200.0)
    exact = Fraction(0)
    for value in values.tolist():
        exact += Fraction(value)
    found = {make_tally(values[order]).value for order in (np.arange(300), np.arange(300)[::-1], np.argsort(values))}
    assert len(found) == 1
    assert found.pop() == pytest.approx(float(exact), rel=1e-15, abs=0)


def test_what_is_taken_back_leaves_nothing() -> None:
    tally = make_tally(np.array([0.1, 0.2, 0.3, 1e-12]))
    tally.note_revocations(np.array([1, 3]), np.zeros(2, np.int64), SECOND * 1001)
    tally.note_returns(np.array([2]), np.array([0.05]), np.zeros(1, np.int64), SECOND * 1002)
    tally.count_notes(5)
    assert tally.value == 0.05 + 1e-12
    assert join_parts(tally.closed[0, 2:]) == 0.05 + 1e-12
