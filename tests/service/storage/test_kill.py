"""kill -9 under load: nothing acknowledged is lost, nothing counts twice."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import crash_worker
import numpy as np
import pytest

from latecomer.service.messages import DecisionAnswer, RankingAnswer
from latecomer.service.store import Store


def killed_over_and_over(folder: Path, cycles: int, seed: int) -> tuple[Path, Path]:
    database, journal = folder / "store.db", folder / "journal"
    script = str(Path(crash_worker.__file__))
    subprocess.run(  # noqa: S603 - our own words
        [sys.executable, script, str(database), str(journal), str(cycles), str(seed)],
        check=True,
        timeout=60 + 5 * cycles,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(script).parent), *sys.path])},
    )
    return database, journal


class Oracle:
    """What one bandit should have, added up request by request."""

    def __init__(self) -> None:
        self.V, self.B = np.eye(crash_worker.DIM), np.zeros(crash_worker.DIM)
        self.rounds = set[int]()
        self.steps, self.arms = Counter[str](), Counter[bool]()
        self.clicked, self.waiting = 0.0, dict[int, Any]()

    def add(self, store: Store, i: int, answer: DecisionAnswer) -> None:
        """Add the decision of request i, and its conversions."""
        entries = answer.ranking if isinstance(answer, RankingAnswer) else [answer]
        assert len(entries) == crash_worker.count_ranked(i)
        for entry in entries:
            self.rounds.add(store.registry.bandits[crash_worker.bandit_of(i)].find_round(entry.decision_id))
            self.arms[answer.is_control] += 1
            assert entry.index not in (crash_worker.excluded_of(i) or [])
            action = crash_worker.actions_of(i)[entry.index]
            self.V += np.outer(action, action)
        amount = (crash_worker.value_of(i) or 0.0) + crash_worker.AGAIN * crash_worker.buys_again(i)
        action, credit = crash_worker.actions_of(i)[answer.index], amount / crash_worker.SCALE
        self.B += credit * action
        if crash_worker.has_stage(i):
            self.clicked += credit
            if not {"c", "e"} & set(crash_worker.steps_of(i)):
                bandit = store.registry.bandits[crash_worker.bandit_of(i)]
                self.waiting[bandit.find_round(answer.decision_id)] = action

    def check(self, store: Store, name: str) -> None:
        """The policies of the bandit have what was added, and its stats."""
        stats, policies, steps = store.stats(name), store.registry.bandits[name].policies, self.steps
        assert self.rounds == set(range(1, stats.rounds + 1))
        assert stats.conversions["accepted"] == steps["c"] + steps["e"]
        assert stats.stages["click"].decisions == steps["s"]
        assert stats.deferred == {"waiting": 0, "activated": steps["a"], "expired": 0}
        counted = {arm: rates.decisions for arm, rates in stats.arms.items()}
        wanted = {"challenger": self.arms[False], "champion": self.arms[True]}
        assert counted == (wanted if name == "shop" else {})
        assert len(policies) == 1 + (name == "shop")
        for policy in policies:
            np.testing.assert_allclose(policy.V, self.V, rtol=0, atol=1e-9)
        np.testing.assert_allclose(policies[0].B, self.B + self.surrogates(policies[0]), rtol=0, atol=1e-9)
        for challenger in policies[1:]:  # which learns from no stage
            np.testing.assert_allclose(challenger.B, self.B, rtol=0, atol=1e-9)

    def surrogates(self, policy: Any) -> Any:
        """What the policy adds for those that reached the stage and have not converted; nothing has closed."""
        rates, active = policy.stage_rates["click"], policy.state.surrogates.active
        assert (rates.reached, rates.others) == (self.steps["s"], len(self.rounds) - self.steps["s"])
        assert rates.reached_credit == pytest.approx(self.clicked)
        assert set(active) <= set(self.waiting)
        return sum((surrogate * self.waiting[round_] for round_, surrogate in active.items()), np.zeros(len(self.B)))


def check_limits(answer: DecisionAnswer) -> None:
    """A choice of the limited bandit has a probability within its limits."""
    assert answer.propensity is not None
    low, high = {"a": (crash_worker.LEAST, 0.9), "b": (0.0, crash_worker.MOST)}.get(str(answer.action_id), (0.0, 0.9))
    assert low - 1e-9 <= answer.propensity <= high + 1e-9


def check(database: Path, journal: Path) -> int:
    """The store against an oracle that adds up what was acknowledged, once the last steps have been taken again."""
    done = crash_worker.journal_of(journal.read_text())
    requests = max(i for _, i in done) + 1
    count, oracles = requests + crash_worker.WORKERS, {name: Oracle() for name in crash_worker.SPECS}
    with Store.open(database) as store:
        shown = [kind == "a" or (kind == "d" and not crash_worker.is_deferred(i)) for kind, i in done]
        assert sum(store.stats(name).rounds for name in oracles) >= sum(shown)
        for i in range(count):
            answer, ticket = crash_worker.decide(store, i)
            oracle = oracles[crash_worker.bandit_of(i)]
            if ("d", i) in done:
                assert done["d", i] == crash_worker.line_of(answer).split()
            if crash_worker.bandit_of(i) == "limited":
                check_limits(answer)
            for kind in crash_worker.steps_of(i)[1:]:
                verdict, ticket = crash_worker.report(store, kind, i, answer.decision_id)
                assert verdict.value in ({"duplicate"} if (kind, i) in done else {"accepted", "duplicate"})
                oracle.steps[kind] += 1
            oracle.add(store, i, answer)
        store.wait(ticket)
        assert sum(len(oracle.rounds) for oracle in oracles.values()) == sum(
            map(crash_worker.count_ranked, range(count))
        )
        for name, oracle in oracles.items():
            oracle.check(store, name)
    return requests


def test_kill_loses_nothing_acknowledged_12_cycles(tmp_path: Path) -> None:
    assert check(*killed_over_and_over(tmp_path, 12, seed=1)) > 100


@pytest.mark.soak
def test_kill_loses_nothing_acknowledged_1000_cycles(tmp_path: Path) -> None:
    assert check(*killed_over_and_over(tmp_path, 1000, seed=2)) > 3000
