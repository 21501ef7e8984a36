"""Rankings drawn by known probabilities: k different actions, with the propensities of the first and of each inclusion.

A policy that knows its propensities has n rankings, one for each of its samples (an optimist has one, of its bounds).
With probability f the control ranks; else with probability ε a uniformly random ranking is taken, else one of the n,
each as likely. Given the samples, therefore, exactly

    P(a first)    = f·c_1(a) + (1 − f)·((1 − ε)·(share of rankings that a leads) + ε/K),
    P(a included) = f·c_k(a) + (1 − f)·((1 − ε)·(share of rankings that have a) + ε·k/K),

where c_1 and c_k are the control's: 1/K and k/K where it is uniform; where it plays one action, that one leads, and the
others follow in a uniformly random order. With k = 1 both are the probability of the choice.
"""

from typing import NamedTuple

import numpy as np
from msgspec import Struct

from latecomer.core.state import Integers
from latecomer.policies.base.choice_probabilities import NO_CONTROL, UNIFORM_CONTROL
from latecomer.policies.base.randomisation import Randomisation
from latecomer.policies.base.search import Search


class Ranking(NamedTuple):
    """Indices in their order; the propensity of the first and of each inclusion; whether the control ranked."""

    indices: list[int]
    first: float | None
    included: tuple[float | None, ...]
    is_control: bool = False

    @classmethod
    def make_unknown(cls, indices: list[int], count: int | None) -> "Ranking":
        """Return a ranking of unknown propensities, among so many actions: what has to be chosen is still certain."""
        k = len(indices)
        return cls(indices, 1.0 if count == 1 else None, (1.0 if count == k else None,) * k)


class RankingDraw(Struct, frozen=True, kw_only=True):
    """The shares by which a ranking is drawn: ε, f, and the index that the control plays (or what stands for it)."""

    floor: float
    share: float
    control: int

    @classmethod
    def make(cls, randomisation: Randomisation, control: int | None, search: Search) -> "RankingDraw":
        """Return the shares for a search's actions; a control that is none of them has no share."""
        index = randomisation.control_index if control is None else control
        is_there = index == UNIFORM_CONTROL or search.has(index)
        share = randomisation.control_share if is_there else 0.0
        return cls(floor=randomisation.floor, share=share, control=index if is_there else NO_CONTROL)

    def draw(self, search: Search, rankings: Integers, number: float, count: int) -> Ranking:
        """Draw one of the rankings, or the control's, or any, by a uniform number."""
        k = rankings.shape[1]
        is_control = number < self.share
        rest = 0.0 if is_control else (number - self.share) / (1.0 - self.share)
        if is_control or rest < self.floor:
            part = number / self.share if is_control else rest / self.floor
            leads = [self.control] if is_control and self.control >= 0 else []
            indices = search.draw(np.random.default_rng(int(part * 2.0**53)), k, leads)
        else:
            place = int((rest - self.floor) / (1.0 - self.floor) * len(rankings))
            indices = rankings[min(place, len(rankings) - 1)].tolist()
        return Ranking(indices, *self.assess(indices, rankings, count), is_control)

    def assess(self, indices: list[int], rankings: Integers, count: int) -> tuple[float, tuple[float, ...]]:
        """Return the propensities of the first of some actions, and of the inclusion of each."""
        first = self._blend(indices[0], float(np.mean(rankings[:, 0] == indices[0])), 1, count)
        k = rankings.shape[1]
        return first, tuple(self._blend(a, float((rankings == a).any(axis=1).mean()), k, count) for a in indices)

    def _blend(self, action: int, own: float, places: int, count: int) -> float:
        """Return the probability that an action is among the first `places`, given its share of the rankings."""
        if self.control < 0:
            control = places / count
        else:
            control = 1.0 if action == self.control else (places - 1) / max(1, count - 1)
        return self.share * control + (1.0 - self.share) * ((1.0 - self.floor) * own + self.floor * places / count)
