"""Random events of a policy with stages, held to a slow oracle; and their journal, applied as a log is."""

from typing import Any

import numpy as np
import pytest
from policy_cases import EVERY_POLICY, make
from stage_oracle import StageOracle

from latecomer.core.state import UNSTAMPED
from latecomer.policies.base import bulk

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
