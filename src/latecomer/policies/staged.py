"""Stages as surrogates: a policy that sees sooner where a click, or a cart, foretells the conversion. A heuristic.

Of all rounds so far, those that reached stage j have converted at a rate r_j, the others at q_j; both are estimated
with a prior, the mean rate, that weighs as much as `prior` rounds. Conversions that are still on their way make both
smaller by their maturity: a surrogate begins small, and grows to its value as rounds close. A decision that reaches the
stage is credited with u_j = r_j − q_j at once, as if it were its conversion: B and the delay curve take it. The real
conversion replaces it when it comes, and where the window closes without one it is taken back exactly. A difference
that is not above two standard errors is no surrogate: then nothing happens, and nothing is lost.

Until its window closes a decision that has reached a stage counts as u_j, also late, when it has become less likely to
convert. That is the same for all actions where r_j is; no correction is made for it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy.typing as npt

from latecomer.durations import Span
from latecomer.errors import InputError
from latecomer.policies.base.decision import Decision, Verdict, round_of
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.recommended import recommended
from latecomer.timestamps import Moment
from latecomer.validation import check_positive, short_repr

_ERRORS = 2.0
"""Standard errors by which rates must differ."""


class StageRates(NamedTuple):
    """Decisions that reached a stage, and the others; conversions of each; and the surrogate that follows."""

    reached: int
    reached_conversions: int
    others: int
    other_conversions: int
    surrogate: float


class Staged:
    """A policy that is credited with a surrogate where a decision reaches a stage.

    Parameters
    ----------
    dim, window
        As of every policy.
    policy
        The class of the policy, or a function such as `recommended`.
    prior
        The rounds that the prior of a stage's rates weighs as much as.
    **common
        The policy's other arguments, but `reward` and `returns`: values are in [0, 1].

    Examples
    --------
    >>> import numpy as np, latecomer as lc
    >>> policy = lc.Staged(dim=2, window=20, seed=0)
    >>> for t in range(200):
    ...     decision = policy.decide(np.eye(2))
    ...     if t % 4 == 0:  # a click, of which every second buys
    ...         _ = policy.reach(decision, "click")
    ...         _ = policy.convert(decision) if t % 8 == 0 else None
    >>> policy.rates["click"].reached, round(policy.rates["click"].surrogate, 2)
    (50, 0.43)
    """

    def __init__(
        self,
        dim: int,
        window: Span,
        *,
        policy: Callable[..., LinearPolicy] = recommended,
        prior: float = 10.0,
        **common: Any,
    ) -> None:
        if taken := sorted({"reward", "returns"} & set(common)):
            raise InputError(f"{taken[0]} must be left out: a surrogate takes its place", field=taken[0])
        self.prior = check_positive("prior", prior)
        reward = {"scale": 1.0, "aggregate": "max"}
        self.policy = policy(dim, window, reward=reward, returns=window, **common)
        """The policy, for its readings: decide and convert here."""
        self._reached: dict[int, dict[str, float]] = {}
        """By open round, the stages that it has reached with the surrogates that they were credited with."""
        self._converted: set[int] = set()
        self._counts: dict[str, list[int]] = {}
        """By stage, rounds that reached it, and conversions of these."""
        self._conversions = 0
        self._next = 1
        """The oldest round that has not been found closed."""

    @property
    def rounds(self) -> int:
        """The number of decisions made."""
        return self.policy.rounds

    @property
    def rates(self) -> dict[str, StageRates]:
        """The rates of each stage, over all decisions so far."""
        return {stage: self._find_rates(stage) for stage in self._counts}

    def _find_rates(self, stage: str) -> StageRates:
        reached, converted = self._counts.get(stage, (0, 0))
        others, other = self.rounds - reached, self._conversions - converted
        surrogate = 0.0
        if reached and others:
            mean = self._conversions / self.rounds
            rate = (converted + self.prior * mean) / (reached + self.prior)
            without = (other + self.prior * mean) / (others + self.prior)
            error = math.sqrt(rate * (1.0 - rate) / reached + without * (1.0 - without) / others)
            surrogate = rate - without if rate - without > _ERRORS * error else 0.0
        return StageRates(reached, converted, others, other, surrogate)

    def decide(self, actions: npt.ArrayLike, *, at: Moment | None = None) -> Decision:
        """Choose one of the actions; the surrogates of rounds that this decision finds closed are taken back."""
        decision = self.policy.decide(actions, at=at)
        for round_ in range(self._next, int(self.policy.state.number("oldest"))):
            self._close(round_, at)
            self._next = round_ + 1
        return decision

    def _close(self, round_: int, at: Moment | None) -> None:
        for stage, surrogate in self._reached.pop(round_, {}).items():
            if surrogate:
                self.policy.revoke(round_, at=at, conversion_id=_name(stage))
        self._converted.discard(round_)

    def reach(self, decision: Decision | float, stage: str = "click", *, at: Moment | None = None) -> Verdict:
        """Note that a decision has reached a stage; verdicts are as in `convert`, and a stage is reached once."""
        if not isinstance(stage, str) or not stage:
            raise InputError(f"stage must be a text; got {short_repr(stage)}", field="stage")
        round_ = round_of(decision)
        if not 0 < round_ <= self.rounds:
            return Verdict.UNKNOWN
        if round_ < self._next:
            return Verdict.LATE
        reached = self._reached.setdefault(round_, {})
        if stage in reached:
            return Verdict.DUPLICATE
        is_converted = round_ in self._converted
        surrogate = 0.0 if is_converted else self._find_rates(stage).surrogate
        if surrogate and self.policy.convert(round_, surrogate, at=at, conversion_id=_name(stage)) is Verdict.LATE:
            surrogate = 0.0
        reached[stage] = surrogate
        counts = self._counts.setdefault(stage, [0, 0])
        counts[0] += 1
        counts[1] += is_converted
        return Verdict.ACCEPTED

    def convert(self, decision: Decision | float, value: float = 1.0, *, at: Moment | None = None) -> Verdict:
        """Credit a conversion to its decision, in place of surrogates; see `LinearPolicy.convert`."""
        verdict = self.policy.convert(decision, value, at=at, conversion_id=_CONVERSION)
        if verdict is Verdict.ACCEPTED:
            round_ = round_of(decision)
            self._converted.add(round_)
            self._conversions += 1
            reached = self._reached.get(round_, {})
            for stage, surrogate in reached.items():
                self._counts[stage][1] += 1
                if surrogate:
                    self.policy.revoke(round_, at=at, conversion_id=_name(stage))
                    reached[stage] = 0.0
        return verdict

    def fresh(self, seed: int) -> "Staged":
        """Make one of the same parameters that has seen nothing."""
        made = object.__new__(Staged)
        made.prior, made.policy = self.prior, self.policy.fresh(seed)
        made._reached, made._converted, made._counts, made._conversions, made._next = {}, set(), {}, 0, 1
        return made


_CONVERSION = "conversion"


def _name(stage: str) -> str:
    """Return the id that stands for a stage's surrogate among the conversions of a round."""
    return f"stage {stage}"
