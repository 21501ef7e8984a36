"""A slow oracle of stages and surrogates: everything that has happened in lists, and B from the definitions."""

import math
from typing import Any

import numpy as np

from latecomer.policies.base.decision import Verdict


class StageOracle:
    """Rounds, stages and conversions; stamps are rounds or microseconds."""

    def __init__(self, dim: int, span: int, *, grace: int = 0, prior: float = 10.0) -> None:
        self.dim, self.span, self.grace, self.prior = dim, span, grace, prior
        self.actions: list[Any] = []
        self.stamps: list[int] = []
        self.reached: list[tuple[int, str, float]] = []
        """Round, stage, and the surrogate that it was credited with then, 0 for none."""
        self.credits: dict[int, float] = {}
        """By round that has converted, its value; 0 once revoked."""

    @property
    def rounds(self) -> int:
        return len(self.actions)

    def decide(self, action: Any, stamp: int | None = None) -> None:
        self.actions.append(np.array(action))
        self.stamps.append(self.rounds if stamp is None else stamp)

    def age(self, round_: int, stamp: int | None = None) -> int:
        """The age of a round, at a stamp or at the latest decision where that is later."""
        latest = self.stamps[-1]
        return max(latest, latest if stamp is None else stamp) - self.stamps[round_ - 1]

    def is_open(self, round_: int) -> bool:
        """Tell whether the latest decision has found the window of a round open."""
        return self.age(round_) <= self.span

    def surrogate(self, stage: str) -> float:
        """r − q where that is above two standard errors."""
        yes = [s for s in range(1, self.rounds + 1) if any(s == t and name == stage for t, name, _ in self.reached)]
        no = [s for s in range(1, self.rounds + 1) if s not in yes]
        if not yes or not no:
            return 0.0
        mean = sum(self.credits.values()) / self.rounds
        r, q = (
            (sum(self.credits.get(s, 0.0) for s in part) + self.prior * mean) / (len(part) + self.prior)
            for part in (yes, no)
        )
        error = math.sqrt(r * (1 - r) / len(yes) + q * (1 - q) / len(no))
        return r - q if r - q > 2 * error else 0.0

    def reach(self, round_: int, stage: str, stamp: int | None = None) -> Verdict:
        if not 1 <= round_ <= self.rounds:
            return Verdict.UNKNOWN
        if self.age(round_, stamp) > self.span + self.grace:
            return Verdict.LATE
        if any((s, name) == (round_, stage) for s, name, _ in self.reached):
            return Verdict.DUPLICATE
        occurred = self.stamps[-1] if stamp is None else stamp
        is_inside = occurred - self.stamps[round_ - 1] <= self.span
        is_credited = self.is_open(round_) and is_inside and round_ not in self.credits
        self.reached.append((round_, stage, self.surrogate(stage) if is_credited else 0.0))
        return Verdict.ACCEPTED

    def convert(self, round_: int, value: float, stamp: int | None = None) -> Verdict:
        if not 1 <= round_ <= self.rounds:
            return Verdict.UNKNOWN
        occurred = self.stamps[-1] if stamp is None else stamp
        is_outside = occurred - self.stamps[round_ - 1] > self.span
        if is_outside or self.age(round_, stamp) > self.span + self.grace:
            return Verdict.LATE
        if round_ in self.credits:
            return Verdict.DUPLICATE
        self.credits[round_] = value
        return Verdict.ACCEPTED

    def revoke(self, round_: int, stamp: int | None = None) -> Verdict:
        if not 1 <= round_ <= self.rounds:
            return Verdict.UNKNOWN
        if self.age(round_, stamp) > self.span + self.grace:
            return Verdict.LATE
        if round_ not in self.credits:
            return Verdict.UNKNOWN
        if self.credits[round_] == 0.0:
            return Verdict.DUPLICATE
        self.credits[round_] = 0.0
        return Verdict.ACCEPTED

    @property
    def active(self) -> dict[int, float]:
        """By open round that has not converted, the largest of its surrogates."""
        found: dict[int, float] = {}
        for round_, _, surrogate in self.reached:
            if surrogate and self.is_open(round_) and round_ not in self.credits:
                found[round_] = max(surrogate, found.get(round_, 0.0))
        return found

    def credit(self, round_: int) -> float:
        """What a round counts for in B."""
        return self.credits.get(round_, self.active.get(round_, 0.0))

    @property
    def B(self) -> Any:
        active = self.active
        values = [self.credits.get(s, active.get(s, 0.0)) for s in range(1, self.rounds + 1)]
        return sum((value * action for value, action in zip(values, self.actions, strict=True)), np.zeros(self.dim))

    @property
    def pending(self) -> int:
        """The open rounds that have not converted."""
        return sum(self.is_open(s) and s not in self.credits for s in range(1, self.rounds + 1))
