"""Guardrails in the state machine: limits of actions and of all, a challenger, and the probabilities of all actions."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest
from bandit_model import Model
from hypothesis.stateful import RuleBasedStateMachine, rule

from latecomer.service.bandit_spec import ChallengerSpec
from latecomer.service.messages import BanditStats, DecisionAnswer, RankedAnswer
from latecomer.service.store import Store

OFFERS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
LEAST, MOST, CEILING = 0.2, 0.3, 0.9
"""The floor of action a, the ceiling of action b, and the ceiling of all."""
LIMITS = {"floor": 0.03, "ceiling": CEILING, "limits": {"a": {"floor": LEAST}, "b": {"ceiling": MOST}}}
SHARE = 0.4
ENOUGH = 10
"""Conversions from which on open decisions are weighed, and where there is no open one at any rate."""


def make_guards(is_limited: bool, is_contested: bool) -> dict[str, Any]:
    """Return the parts of a specification; a challenger has the same limits."""
    parameters = LIMITS if is_limited else {}
    challenger = ChallengerSpec(policy="LinUCB", parameters=parameters, share=SHARE) if is_contested else None
    return {"parameters": parameters, "challenger": challenger}


class GuardrailRules(RuleBasedStateMachine):
    """A store with the bandit "shop", and its model."""

    store: Store
    model: Model
    is_limited: bool
    is_contested: bool
    played: Callable[[DecisionAnswer], None]

    @property
    def now(self) -> int:
        """The store's time."""
        return self.store.clock.now()

    @rule()
    def decide_with_probabilities(self) -> None:
        answer, ticket = self.store.decide("shop", OFFERS, ["a", "b", "c"], probabilities=True)
        self.store.wait(ticket)
        assert isinstance(answer, RankedAnswer)
        assert sum(answer.probabilities) == pytest.approx(1.0)
        assert answer.propensity == pytest.approx(answer.probabilities[answer.index])
        for label, probability in zip("abc", answer.probabilities, strict=True):
            self.check_limits(label, probability, "abc")
        self.played(answer)

    def check_limits(self, label: str | None, propensity: float | None, among: Collection[object]) -> None:
        """An action is chosen with a probability within its limits, and with 1 where there is no other."""
        assert propensity is not None
        if len(among) == 1:
            assert propensity == pytest.approx(1.0)
        elif self.is_limited:
            low, high = LEAST if label == "a" else 0.0, MOST if label == "b" else CEILING
            assert low - 1e-9 <= propensity <= high + 1e-9

    def check_arms(self, stats: BanditStats) -> None:
        """Both policies have learnt everything, and each arm has its decisions, in the order of the documentation."""
        policies = self.store.registry.bandits["shop"].policies
        assert len(policies) == 1 + self.is_contested
        if stats.contest is None or not self.is_contested:
            assert (stats.contest, stats.arms, self.is_contested) == (None, {}, False)
            return
        np.testing.assert_allclose(policies[1].V, self.model.V, rtol=0, atol=1e-12)
        np.testing.assert_allclose(policies[1].B, self.model.B, rtol=0, atol=1e-12)
        assert policies[0].delay_curve is not None
        edges, shares = policies[0].delay_curve
        unit = 1.0 if self.model.in_rounds else 1e6
        all_rounds = range(1, len(self.model.by_champion) + 1)
        is_known = shares[0] < 1.0 and sum(map(self.model.is_credited, all_rounds)) >= ENOUGH
        is_known = is_known or all(self.model.find_age(round_, self.now) / unit >= edges[-1] for round_ in all_rounds)
        found = stats.contest
        for arm, decisions, mean, is_champion in (
            ("challenger", found.decisions, found.mean, False),
            ("champion", found.other_decisions, found.other_mean, True),
        ):
            rounds = [place + 1 for place, by in enumerate(self.model.by_champion) if by is is_champion]
            closed = [round_ for round_ in rounds if round_ <= self.model.forgotten]
            assert decisions == len(closed)
            values = [self.model.credit(round_) for round_ in closed if self.model.is_credited(round_)]
            assert mean == (pytest.approx(sum(values) / len(closed), abs=1e-9) if closed else None)
            rates = stats.arms[arm]
            assert (rates.decisions, rates.conversions) == (len(rounds), sum(map(self.model.is_credited, rounds)))
            ages = [self.model.find_age(round_, self.now) / unit for round_ in rounds if round_ not in closed]
            matured = len(closed) + float(np.interp(ages, edges, shares).sum())
            assert rates.matured_decisions == (pytest.approx(matured, abs=1e-9) if is_known else None)
