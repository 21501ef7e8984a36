"""Stages of policies: surrogates held to a slow oracle, and their states to the last bit in files and replays."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY
from staged_player import ROWS, SECOND, Player, replay

import latecomer as lc
from latecomer.errors import DamagedFileError, InputError
from latecomer.policies.base import bulk
from latecomer.policies.persistence.snapshot import PolicySnapshot


def play_and_check(name: str, steps: int, *, timed: bool) -> Player:
    """Hold a policy to the oracle after every step."""
    player = Player(name, 5, timed=timed)
    for _ in range(steps):
        player.play(1)
        player.check()
    return player


@pytest.mark.parametrize("timed", [False, True], ids=["rounds", "time"])
@pytest.mark.parametrize("name", ["OTFLinUCB-buffered", "WaitingLinUCB"])
def test_surrogates_are_those_of_the_definition(name: str, timed: bool) -> None:
    assert play_and_check(name, 40, timed=timed).credited > 8


@pytest.mark.soak
@pytest.mark.parametrize("timed", [False, True], ids=["rounds", "time"])
@pytest.mark.parametrize("name", [name for name in EVERY_POLICY if name != "LogisticLinTS"])  # it has no B of credits
def test_surrogates_are_those_of_the_definition_for_long(name: str, timed: bool) -> None:
    assert play_and_check(name, 400, timed=timed).credited > 80


def assert_same(one: Any, other: Any) -> None:
    """States, held rounds, generators and tables are equal to the last bit; the ring may begin elsewhere."""
    for name in one.state.saved_fields():
        if name != "head":
            np.testing.assert_array_equal(one.state.record[name], other.state.record[name], err_msg=name)
    for name in ("stamp", "norm", "credit", "action", *one.algorithm.round_fields):
        np.testing.assert_array_equal(bulk.read_held(one, name), bulk.read_held(other, name), err_msg=name)
    if one.algorithm.needs_arrival_times:  # a round that has not converted has none
        is_credited = ~np.isnan(bulk.read_held(one, "credit"))
        arrivals = [bulk.read_held(each, "arrival")[is_credited] for each in (one, other)]
        np.testing.assert_array_equal(arrivals[0], arrivals[1])
    assert one.rng.state() == other.rng.state()
    ours, theirs = one.table_arrays(), other.table_arrays()
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def check_bits(name: str, path: Path, steps: int, *, timed: bool) -> None:
    """Play, save and load on the way, and replay."""
    live, saved = (Player(name, 7, timed=timed) for _ in range(2))
    for _ in range(3):
        live.play(steps)
        saved.play(steps)
        saved.policy.save(path)
        saved.policy = lc.load(path)
    live.clock = saved.clock = live.clock + 16 * SECOND  # rounds with surrogates close, in one batch of a replay
    for _ in range(6):
        live.decide()
        saved.decide()
    assert live.credited > 5
    assert_same(saved.policy, live.policy)
    assert_same(replay(name, live.journal, timed=timed), live.policy)


CASES = [("OTFLinUCB-buffered", False), ("OTFLinUCB-buffered", True), ("MaturedLinTS", True), ("WaitingLinTS", False)]


@pytest.mark.parametrize(("name", "timed"), CASES)
def test_a_replay_and_a_file_are_the_policy_to_the_last_bit(name: str, timed: bool, tmp_path: Path) -> None:
    check_bits(name, tmp_path / "policy", 10, timed=timed)


@pytest.mark.soak
@pytest.mark.parametrize("timed", [False, True], ids=["rounds", "time"])
@pytest.mark.parametrize("name", EVERY_POLICY)
def test_every_policy_is_replayed_to_the_last_bit(name: str, timed: bool, tmp_path: Path) -> None:
    check_bits(name, tmp_path / "policy", 60, timed=timed)


def test_a_snapshot_is_the_policy_to_the_last_bit() -> None:
    player = Player("OTFLinUCB-buffered", 7, timed=True)
    player.play(40)
    policy = player.policy
    held = slice(int(policy.state.number("kept")) - 1, None)
    actions, stamps = np.array(player.oracle.actions)[held], np.array(player.oracle.stamps)[held]
    for round_ in range(policy.rounds - 3, policy.rounds + 1):
        policy.reach(round_, "cart", at=player.clock / SECOND)
    assert policy.state.surrogates.active
    data = PolicySnapshot.capture(policy).to_bytes()
    again = PolicySnapshot.from_bytes(data, name="snapshot").restore(actions, stamps)
    for step in range(6):
        for each in (policy, again):
            each.decide(ROWS, at=player.clock / SECOND + 5 * step)
            each.convert(each.rounds - step, at=player.clock / SECOND + 5 * step)
    for name in policy.state.saved_fields():
        if name != "head":  # the ring begins elsewhere
            np.testing.assert_array_equal(again.state.record[name], policy.state.record[name], err_msg=name)
    for name, array in policy.table_arrays().items():
        np.testing.assert_array_equal(again.table_arrays()[name], array, err_msg=name)


def test_many_decisions_at_once_equal_one_after_the_other() -> None:
    one, many = (Player("OTFLinTS-heuristic", 7) for _ in range(2))
    for player in (one, many):
        player.play(40)
        for round_ in range(player.policy.rounds - 9, player.policy.rounds + 1):
            player.policy.reach(round_, "cart")
    assert len(one.policy.state.surrogates.active) > 2
    alone = [one.policy.decide(ROWS) for _ in range(30)]
    together = many.policy.decide_many(np.tile(ROWS, (30, 1, 1)))
    assert [decision.score for decision in alone] == [decision.score for decision in together]
    assert not one.policy.state.surrogates.active
    assert_same(one.policy, many.policy)


def test_a_stage_that_tells_nothing_changes_nothing_to_the_last_bit() -> None:
    staged, plain = lc.OTFLinTS(2, 20, seed=1, stages=["click"]), lc.OTFLinTS(2, 20, seed=1)
    for t in range(60):
        decisions = [policy.decide(ROWS) for policy in (staged, plain)]
        assert decisions[0].score == decisions[1].score
        if t % 3 == 0:
            staged.reach(decisions[0], "click")
        if t % 7 == 0:  # of those that clicked, and of the others, one in seven
            staged.convert(decisions[0])
            plain.convert(decisions[1])
    assert staged.stage_rates["click"].surrogate == 0.0
    np.testing.assert_array_equal(staged.B, plain.B)


def test_amounts_and_returns_are_what_surrogates_are_made_of() -> None:
    policy = lc.OTFLinUCB(1, 10, reward={"scale": 200, "aggregate": "sum"}, returns=100, stages=["click"])
    for t in range(40):
        decision = policy.decide([[1.0]])
        if t % 4 == 0:
            policy.reach(decision, "click")
            policy.convert(decision, 50.0, conversion_id=f"{t}a")
            policy.convert(decision, 50.0, conversion_id=f"{t}b")
    rates = policy.stage_rates["click"]
    assert (rates.reached, rates.reached_credit, rates.other_credit) == (10, 5.0, 0.0)
    assert policy.revoke(1, conversion_id="0a") is lc.Verdict.ACCEPTED  # long after its window
    assert policy.correct(5, 200.0) is lc.Verdict.ACCEPTED
    rates = policy.stage_rates["click"]
    assert (rates.reached_credit, rates.other_credit) == (5.25, 0.0)
    before = float(policy.B[0])
    decision = policy.decide([[1.0]])
    policy.reach(decision, "click")
    assert policy.B[0] - before == pytest.approx(rates.surrogate)
    assert policy.revoke(decision) is lc.Verdict.UNKNOWN  # a surrogate is no conversion
    assert policy.correct(decision, 10.0) is lc.Verdict.UNKNOWN
    policy.convert(decision, 20.0)
    assert policy.B[0] - before == pytest.approx(0.1)


def test_positions_and_deferred_decisions_reach_stages() -> None:
    policy = lc.recommended(2, 10, seed=1, stages=["click"])
    ranking = policy.decide(ROWS, k=2)
    assert policy.reach(ranking, "click", position=2) is lc.Verdict.ACCEPTED
    assert policy.reach(ranking.round + 1, "click") is lc.Verdict.DUPLICATE
    waiting = policy.decide(ROWS, deferred=True)
    assert policy.reach(waiting, "click") is lc.Verdict.UNKNOWN
    policy.activate(waiting)
    assert policy.reach(waiting, "click") is lc.Verdict.ACCEPTED


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"stages": "click"}, "stages must be a list of names"),
        ({"stages": 3}, "stages must be a list of names"),
        ({"stages": ["a b"]}, "stages must be names of 1 to 32"),
        ({"stages": [1]}, "stages must be names of 1 to 32"),
        ({"stages": ["a", "a"]}, "stages must be different; got 'a' twice"),
        ({"stages": [f"s{i}" for i in range(17)]}, "stages must be at most 16; got 17"),
        ({"stages": ["a"], "stage_prior": 0.0}, "stage_prior must"),
    ],
)
def test_wrong_stages_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        lc.recommended(2, 10, **wrong)
    assert caught.value.field == list(wrong)[-1]


def test_other_stages_are_refused_and_change_nothing() -> None:
    policy = lc.recommended(2, 10, seed=1, stages=["click", "cart"])
    decision = policy.decide(ROWS)
    before = policy.to_bytes()
    with pytest.raises(InputError, match=r"stage must be one of click, cart; got 'clik'.*click"):
        policy.reach(decision, "clik")
    with pytest.raises(InputError, match="the policy has no stages"):
        lc.recommended(2, 10).reach(1, "click")
    assert policy.to_bytes() == before


def test_a_file_whose_stages_do_not_fit_is_refused(tmp_path: Path) -> None:
    player = Player("OTFLinUCB-exact", 7)
    player.play(40)
    policy, table = player.policy, player.policy.state.surrogates
    for wrong in ({1: 0.5}, {policy.rounds: 1.5}):  # a round that has closed, and more than a round can be worth
        right = dict(table.active)
        table.active.update(wrong)
        policy.save(tmp_path / "policy")
        table.active = right
        with pytest.raises(DamagedFileError, match="its surrogates are not of open rounds"):
            lc.load(tmp_path / "policy")
    table._sums.append([0.0, 0.0])
    policy.save(tmp_path / "policy")
    with pytest.raises(DamagedFileError, match="its stages do not fit together"):
        lc.load(tmp_path / "policy")


@pytest.mark.soak
def test_both_tiers_have_the_same_bits() -> None:
    found = set()
    for mode in ("never", "now"):
        places = [*sys.path, str(Path(__file__).parent)]
        environment = {**os.environ, "LATECOMER_COMPILE": mode, "PYTHONPATH": os.pathsep.join(places)}
        ran = subprocess.run([sys.executable, "-c", IN_ONE_TIER], env=environment, check=True, capture_output=True)  # noqa: S603
        found.add(ran.stdout)
    assert len(found) == 1
    assert found.pop().strip()


IN_ONE_TIER = """
import hashlib, test_staged_policies as tests
for name, timed in tests.CASES:
    player = tests.Player(name, 7, timed=timed)
    player.play(40)
    print(hashlib.sha256(player.policy.to_bytes()).hexdigest())
"""


def test_a_contest_tells_those_that_have_the_stage() -> None:
    plain, taught = lc.LinUCB(2, 20), lc.LinUCB(2, 20, stages=["click"])
    contest = lc.Contest(plain, taught, share=0.5, seed=1)
    decision = contest.decide(ROWS)
    assert contest.reach(decision, "click") is lc.Verdict.ACCEPTED
    assert contest.reach(decision, "click") is lc.Verdict.DUPLICATE
    assert taught.stage_rates["click"].reached == 1
    with pytest.raises(InputError, match="the policy has no stages"):
        contest.reach(decision, "cart")


def test_a_surrogate_is_weighed_by_age_as_a_conversion_is() -> None:
    policy, plain = (lc.OTFLinUCB(2, 10, half_life=5, stages=stages) for stages in (["click"], None))
    for t in range(30):
        for each in (policy, plain):
            each.decide(ROWS[:1])
            if t % 3 == 0:
                each.convert(each.rounds)
        if t % 3 == 0:
            policy.reach(policy.rounds, "click")
    for each in (policy, plain):
        each.decide(ROWS[:1])
    policy.reach(policy.rounds, "click")
    assert policy.B[0] > plain.B[0] + 0.5
    for _ in range(11):  # its window closes
        for each in (policy, plain):
            each.decide(ROWS[:1])
    np.testing.assert_allclose(policy.B, plain.B, rtol=1e-12)
