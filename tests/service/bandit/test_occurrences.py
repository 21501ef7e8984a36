"""occurred_at: every time type is accepted, the future is refused, and times before the decision are counted."""

import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fake_clocks import DAY, HOUR, FakeClocks, state_of
from store_internals import sqlite_log

import latecomer as lc
from latecomer.core.conversions import ACCEPTED, LATE
from latecomer.errors import InputError, OccurredBeforeDecisionWarning
from latecomer.service.bandit.counters import Counters
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Conversion, Revocation, Verdict
from latecomer.service.storage.recovery import make_index_opener, read_descriptors, recover_bandit
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay
from latecomer.timestamps import to_datetime

WEEK = BanditSpec(dim=2, window="7d")
OFFERS = np.eye(2)


@pytest.fixture
def machine() -> FakeClocks:
    return FakeClocks()


@pytest.fixture
def store(tmp_path: Path, machine: FakeClocks) -> Iterator[Store]:
    with Store.open(tmp_path / "store.db", clock=machine) as opened:
        opened.create("shop", WEEK)
        yield opened


def decided(store: Store, count: int) -> list[str]:
    answers = [store.decide("shop", OFFERS) for _ in range(count)]
    store.wait(answers[-1][1])
    return [answer.decision_id for answer, _ in answers]


# ---- the future ----


def test_occurred_at_a_day_ahead_is_refused_before_any_change(store: Store, machine: FakeClocks) -> None:
    ids = decided(store, 2)
    ahead = to_datetime(machine.wall() + DAY) + timedelta(seconds=1)
    before = state_of(store, "shop")
    rule = r"^occurred_at of report 1 must not lie more than a day ahead of the store's clock, 2027-01-15T08:00:00Z; "
    with pytest.raises(InputError, match=rule + r"got 2027-01-16T08:00:01\+00:00: check its zone, its unit"):
        store.convert("shop", [Conversion(ids[0]), Conversion(ids[1], occurred_at=ahead)])
    with pytest.raises(InputError, match="occurred_at of report 0 must not lie more than a day ahead"):
        store.revoke("shop", [Revocation(ids[0], occurred_at=ahead)])
    assert state_of(store, "shop") == before


def test_occurred_at_slightly_ahead_counts_as_now(store: Store, machine: FakeClocks) -> None:
    (first,) = decided(store, 1)
    machine.advance(HOUR)
    ahead = to_datetime(machine.wall() + DAY)
    assert store.convert("shop", [Conversion(first, occurred_at=ahead)])[0] == [Verdict.ACCEPTED]
    assert store.stats("shop").delay_sum == pytest.approx(3600)


# ---- the store in this process ----


@pytest.mark.parametrize("dress", ["datetime", "Timestamp", "datetime64", "text", "seconds"])
def test_occurred_at_accepts_every_time_type(tmp_path: Path, machine: FakeClocks, dress: str) -> None:
    with lc.open(tmp_path / "shop.db", dim=2, window=np.timedelta64(7, "D"), clock=machine) as bandit:
        answers = [bandit.decide(OFFERS) for _ in range(2)]
        bought = to_datetime(machine.wall() + HOUR)
        machine.advance(DAY)
        moment: Any = {
            "datetime": bought,
            "Timestamp": pd.Timestamp(bought),
            "datetime64": np.datetime64(bought.replace(tzinfo=None)),
            "text": bought.isoformat(),
            "seconds": bought.timestamp(),
        }[dress]
        assert bandit.convert(answers[0].decision_id, occurred_at=moment).name == "ACCEPTED"
        assert bandit.convert_many([Conversion(answers[1].decision_id, 1.0, moment)]) == [Verdict.ACCEPTED]
        assert bandit.stats().delay_sum == pytest.approx(2 * 3600, abs=1e-3)
        assert bandit.revoke(answers[0].decision_id, occurred_at=moment) is Verdict.ACCEPTED


@pytest.mark.parametrize(
    ("moment", "message"),
    [
        (pd.NaT, "leave out rows without a conversion"),
        (np.datetime64("NaT"), "leave out rows without a conversion"),
        (float("nan"), "leave out rows without a conversion"),
        ("soon", "write it as 2026-01-05T12:00:00Z"),
        (1_800_000_000_000, "it looks like milliseconds, divide it by 1000"),
    ],
)
def test_invalid_occurred_at_is_refused(tmp_path: Path, moment: Any, message: str) -> None:
    with lc.open(tmp_path / "shop.db", dim=2, window="7d") as bandit:
        decision_id = bandit.decide(OFFERS).decision_id
        with pytest.raises(InputError, match=rf"^occurred_at must be .*{message}"):
            bandit.convert(decision_id, occurred_at=moment)
        with pytest.raises(InputError, match=rf"^occurred_at of report 0 must be .*{message}"):
            bandit.convert_many([Conversion(decision_id, 1.0, moment)])
        with pytest.raises(InputError, match=rf"^occurred_at must be .*{message}"):
            bandit.revoke(decision_id, occurred_at=moment)
        assert bandit.stats().conversions["accepted"] == 0


# ---- before the decision ----


def test_counters_count_conversions_before_decision_apart() -> None:
    counters = Counters(in_rounds=False)
    verdicts, delays = np.array([ACCEPTED, LATE, ACCEPTED, ACCEPTED]), np.array([-1, 0, 5_000_000, -1])
    assert counters.add_conversions(verdicts, delays).tolist() == [0, 3]
    assert (counters.before_decision.tolist(), counters.delays.sum(), counters.delay_sum) == ([2], 1, 5.0)
    twin = Counters(in_rounds=False)
    twin.restore(counters.to_dict())
    assert twin.to_dict() == counters.to_dict()


def test_append_portion_shifts_warning_indices() -> None:
    portion = VerdictList([Verdict.ACCEPTED] * 2, warnings_at(1))
    every = VerdictList()
    every.append_portion(portion, portion.warnings)
    every.append_portion(portion, portion.warnings)
    assert (every, [found.index for found in every.warnings]) == ([Verdict.ACCEPTED] * 4, [1, 3])


def warnings_at(*places: int) -> Any:
    from latecomer.service.bandit.verdict_list import make_early_warnings

    return make_early_warnings(places)


def test_conversion_before_its_decision_is_accepted_counted_and_warned(store: Store, machine: FakeClocks) -> None:
    ids = decided(store, 3)
    machine.advance(HOUR)
    early, since = to_datetime(0), to_datetime(machine.wall() - HOUR // 2)
    reports = [Conversion(ids[0], occurred_at=since), Conversion(ids[1], occurred_at=early), Conversion(ids[1])]
    verdicts, _ = store.convert("shop", reports)
    assert verdicts == [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.DUPLICATE]
    assert [(found.index, found.code) for found in verdicts.warnings] == [(1, "occurred_before_decision")]
    assert "check its zone" in verdicts.warnings[0].message
    stats = store.stats("shop")
    assert (stats.before_decision, stats.conversions["accepted"], sum(stats.delay_counts)) == (1, 2, 1)
    assert stats.delay_sum == pytest.approx(1800)
    assert store.convert("shop", [Conversion(ids[2])])[0].warnings == []


def test_before_decision_count_survives_snapshot_restart_and_replay(tmp_path: Path, machine: FakeClocks) -> None:
    path = tmp_path / "store.db"
    with Store.open(path, clock=machine) as store:
        store.create("shop", WEEK)
        for _ in range(3):
            (first,) = decided(store, 1)
            store.convert("shop", [Conversion(first, occurred_at=to_datetime(0))])
        before = state_of(store, "shop")
    assert before["stats"].before_decision == 3
    with Store.open(path, clock=machine) as store:  # from the snapshot that closing took
        assert state_of(store, "shop") == before
        found, _ = read_descriptors(sqlite_log(store).reader, {})
        reader = sqlite_log(store).reader
        folded = recover_bandit(  # from the first row
            reader, next(iter(found.values())), open_index=make_index_opener(reader), from_snapshot=False
        ).bandit
        assert folded.stats() == before["stats"]
        assert replay(store, "shop", "twin", window="168h").before_decision == 3


def test_early_conversion_warns_at_the_callers_line(tmp_path: Path, machine: FakeClocks) -> None:
    with lc.open(tmp_path / "shop.db", dim=2, window="7d", clock=machine) as bandit:
        ids = [bandit.decide(OFFERS).decision_id for _ in range(4)]
        with pytest.warns(OccurredBeforeDecisionWarning, match=r"^occurred_at lies before the decision: ") as seen:
            verdict = bandit.convert(ids[0], occurred_at="1970-01-01")
        assert verdict.name == "ACCEPTED"
        assert [Path(warning.filename).name for warning in seen] == [Path(__file__).name]
        reports = [Conversion(id_, occurred_at=to_datetime(0)) for id_ in ids[1:3]]
        with pytest.warns(OccurredBeforeDecisionWarning, match=r"^2 conversions: occurred_at lies before") as seen:
            verdicts = bandit.convert_many(reports)
        assert [found.index for found in verdicts.warnings] == [0, 1]
        assert [Path(warning.filename).name for warning in seen] == [Path(__file__).name]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert bandit.convert(ids[3]).name == "ACCEPTED"
