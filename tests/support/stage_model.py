"""A model of a bandit that may learn from a stage: the surrogates of open decisions, from the definition."""

import math
from typing import Any

from bandit_model import WINDOW, Model

from latecomer.service.messages import Verdict

TAUGHT, PRIOR = "click", 1e-3
"""The stage that the policy learns from, and the weight of its prior: so small that a few decisions tell."""


class StageModel(Model):
    """The model, with the largest surrogate that each decision has been credited with."""

    def __init__(self, *of_model: Any, is_taught: bool) -> None:
        super().__init__(*of_model)
        self.is_taught = self.keeps_baskets = is_taught
        self.surrogates: dict[int, float] = {}

    def reach(self, round_: int, stage: str, reported: int) -> Verdict:
        surrogate = self.find_surrogate() if self.is_taught and stage == TAUGHT else 0.0
        verdict = super().reach(round_, stage, reported)
        if verdict is Verdict.ACCEPTED and surrogate and self.is_open(round_, reported):
            self.surrogates[round_] = surrogate
        return verdict

    def is_open(self, round_: int, reported: int) -> bool:
        """Tell whether a decision has not converted, and its window holds the report and the latest decision."""
        is_inside = self.in_rounds or reported - self.stamps[round_ - 1] <= WINDOW
        return self.credits[round_ - 1] is None and round_ > self.forgotten and is_inside

    def find_surrogate(self) -> float:
        """r − q where that is above two standard errors."""
        rounds = range(1, len(self.stamps) + 1)
        yes = [round_ for round_ in rounds if (round_, TAUGHT) in self.stages]
        no = [round_ for round_ in rounds if (round_, TAUGHT) not in self.stages]
        if not yes or not no:
            return 0.0
        mean = sum(map(self.credit_now, rounds)) / len(rounds)
        r, q = ((sum(map(self.credit_now, part)) + PRIOR * mean) / (len(part) + PRIOR) for part in (yes, no))
        error = math.sqrt(max(r * (1 - r), 0.0) / len(yes) + max(q * (1 - q), 0.0) / len(no))
        return r - q if r - q > 2 * error else 0.0

    def credit_now(self, round_: int) -> float:
        """What the conversions of a decision are worth."""
        is_credited = self.credits[round_ - 1] is not None and round_ not in self.revoked
        return self.credit(round_) if is_credited else 0.0

    @property
    def B(self) -> Any:
        waiting = {s: u for s, u in self.surrogates.items() if s > self.forgotten and self.credits[s - 1] is None}
        return super().B + sum(surrogate * self.actions[s - 1] for s, surrogate in waiting.items())
