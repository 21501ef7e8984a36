"""Stages of policies: surrogates held to a slow oracle, and their states to the last bit in files and replays."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make
from stage_oracle import StageOracle

import latecomer as lc
from latecomer.core.state import UNSTAMPED
from latecomer.errors import DamagedFileError, InputError
from latecomer.policies.base import bulk
from latecomer.policies.persistence.snapshot import PolicySnapshot

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
SECOND = 1_000_000
SUMMARY = bulk.summarise(ROWS)
TIMED = {"window": "20s", "grace": "8s"}
LEARNS_ON_CLOSE = ("WaitingLinUCB", "WaitingLinTS")


class Player:
    """A policy with stages and the oracle beside it, through random events; `journal` has these."""

    def __init__(self, name: str, seed: int, *, timed: bool = False, **more: Any) -> None:
        options = {**(TIMED if timed else {"window": 20}), "stages": ["click", "cart"], "stage_prior": 0.5, **more}
        if EVERY_POLICY[name].get("seed") is not None:
            options["seed"] = 3
        self.policy, self.timed = make(name, 2, options.pop("window"), **options), timed
        unit = SECOND if timed else 1
        self.oracle = StageOracle(2, 20 * unit, grace=8 * unit * timed, prior=0.5)
        self.rng, self.clock, self.journal = np.random.default_rng(seed), 0, []  # type: ignore[var-annotated]
        self.credited = 0

    @property
    def stamp(self) -> int | None:
        return self.clock if self.timed else None

    def moment(self) -> dict[str, Any]:
        return {"at": self.clock / SECOND} if self.timed else {}

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.clock += SECOND * int(self.rng.choice([0, 0, 1, 3]))
            for _ in range(int(self.rng.choice([1, 1, 2]))):
                self.decide()
            for _ in range(4):
                self.report()

    def decide(self) -> None:
        decision = self.policy.decide(ROWS, **self.moment())
        self.oracle.decide(decision.action, self.stamp)
        self.journal.append(("decide", decision.action, self.stamp))

    def report(self) -> None:
        """A stage, a conversion or a revocation of a recent round, or of one that never was."""
        oracle, rounds = self.oracle, self.oracle.rounds
        kind = str(self.rng.choice(["click", "cart", "convert", "revoke"], p=[0.25, 0.3, 0.4, 0.05]))
        round_ = rounds - int(self.rng.integers(-1, 26))
        carts = [s for s, stage, _ in oracle.reached if stage == "cart" and rounds - s < 26 and s not in oracle.credits]
        if kind == "convert" and carts and self.rng.random() < 0.8:  # carts foretell, and clicks tell less
            round_ = int(self.rng.choice(carts))
        self.apply(kind, round_)

    def apply(self, kind: str, round_: int) -> None:
        before = len(self.oracle.active)
        policy, oracle, value = self.policy, self.oracle, float(self.rng.choice([0.5, 1.0, 1.0]))
        if kind == "convert":
            verdict = policy.convert(round_, value, **self.moment())
            expected = oracle.convert(round_, value, self.stamp)
        elif kind == "revoke":
            verdict, expected = policy.revoke(round_, **self.moment()), oracle.revoke(round_, self.stamp)
        else:
            verdict, expected = policy.reach(round_, kind, **self.moment()), oracle.reach(round_, kind, self.stamp)
        assert verdict is expected
        self.credited += len(self.oracle.active) > before
        self.journal.append((kind, round_, self.stamp, value))

    def check(self) -> None:
        policy, oracle = self.policy, self.oracle
        assert (policy.rounds, policy.pending) == (oracle.rounds, oracle.pending)
        assert policy.state.surrogates.active == pytest.approx(oracle.active, abs=1e-12)
        for stage in ("click", "cart"):
            assert policy.stage_rates[stage].surrogate == pytest.approx(oracle.surrogate(stage), abs=1e-12)
        if type(policy).__name__ in LEARNS_ON_CLOSE:
            closed = [s for s in range(1, oracle.rounds + 1) if not oracle.is_open(s)]
            expected = sum((oracle.credits.get(s, 0.0) * oracle.actions[s - 1] for s in closed), np.zeros(2))
        else:
            expected = oracle.B
        np.testing.assert_allclose(policy.B, expected, atol=1e-9)
        credited = sum(oracle.credit(s) for s in range(1, oracle.rounds + 1))
        assert policy.state.number("credited") == pytest.approx(credited, abs=1e-9)


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


def replay(name: str, journal: list[Any], *, timed: bool) -> Any:
    """Apply a journal as a log is applied: decisions that follow each other at once."""
    policy = Player(name, 0, timed=timed).policy
    waiting: list[tuple[Any, int | None]] = []

    def record() -> None:
        if waiting:
            stamps = np.array([UNSTAMPED if stamp is None else stamp for _, stamp in waiting])
            actions = np.array([action for action, _ in waiting])
            bulk.record(policy, actions, np.tile(SUMMARY, (len(waiting), 1)), stamps)
            waiting.clear()

    for kind, subject, stamp, *value in journal:
        if kind == "decide":
            waiting.append((subject, stamp))
            continue
        record()
        moment = UNSTAMPED if stamp is None else stamp
        if kind == "convert":
            bulk.convert(policy, np.array([subject]), np.array(value), np.array([moment]))
        elif kind == "revoke":
            bulk.revoke(policy, subject, moment, moment)
        else:
            policy.reach_stage(subject, kind, moment, moment)
    record()
    return policy


def assert_same(one: Any, other: Any) -> None:
    """States, generators and tables are equal to the last bit: so are the files."""
    for name in one.state.saved_fields():
        np.testing.assert_array_equal(one.state.record[name], other.state.record[name], err_msg=name)
    assert one.to_bytes() == other.to_bytes()


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
