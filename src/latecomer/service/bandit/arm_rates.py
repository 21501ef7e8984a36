"""The conversion rates of the arms of a bandit: its policy and control, or its champion and challenger."""

from typing import TYPE_CHECKING

import numpy as np

from latecomer.core.state import Array
from latecomer.policies.base.policy import LinearPolicy
from latecomer.service.bandit.lift import ARMS, CONTEST
from latecomer.service.bandit.matured_decisions import can_weigh, compute_matured_rate, weigh_open_rounds
from latecomer.service.bandit.tally.columns import Column
from latecomer.service.bandit.tally.open_rounds import CONVERTED, split_arms
from latecomer.service.bandit.tally.tally import Tally
from latecomer.service.messages import ArmRates

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


def find_curve(bandit: "Bandit") -> LinearPolicy | None:
    """Return the first of a bandit's policies that has a delay curve; champion and challenger learn the same delays."""
    return next((policy for policy in bandit.policies if policy.delay_curve is not None), None)


def find_known_curve(bandit: "Bandit", tally: Tally, *, now: int) -> LinearPolicy | None:
    """Return the policy whose delay curve weighs the decisions of a tally; None while too little is known for it."""
    policy, conversions = find_curve(bandit), int(bandit.tally.buckets.counts[:, Column.CREDITED].sum())
    end = tally.first_round + tally.count_decisions()
    is_known = policy is not None and can_weigh(policy, end=end, conversions=conversions, now=now)
    return policy if is_known else None


def rate_arms(bandit: "Bandit", tally: Tally, *, now: int) -> dict[str, ArmRates]:
    """Return the rates by arm as of `now`, the store's time; nothing where the bandit has one arm.

    The notes must have been counted. Decisions of unknown propensity, which are imported, are of no arm.
    """
    if bandit.contest is None and not tally.buckets.counts[:, Column.CONTROLS].any():
        return {}
    names, curve = ARMS if bandit.contest is None else CONTEST, find_known_curve(bandit, tally, now=now)
    first, facts = tally.read_open()
    is_converted = (facts["flags"] & CONVERTED) != 0
    found = {}
    for name, is_own, (closed, closed_conversions, *_) in zip(
        names, split_arms(facts["flags"])[:2], tally.closed[:2].tolist(), strict=True
    ):
        decisions = closed + int(np.count_nonzero(is_own))
        conversions = closed_conversions + int(np.count_nonzero(is_own & is_converted))
        matured = None if curve is None else closed + _weigh(curve, first, is_own.astype(np.float64), now)
        found[name] = ArmRates(
            decisions=decisions,
            conversions=conversions,
            matured_decisions=matured,
            naive=conversions / decisions if decisions else None,
            matured=compute_matured_rate(conversions, matured),
            closed=closed_conversions / closed if closed else None,
        )
    return found


def _weigh(policy: LinearPolicy, first: int, is_own: Array, now: int) -> float:
    """Return Σ F̂(age) of the rounds from `first` on that are an arm's own."""
    oldest, rounds = int(policy.state.number("oldest")), policy.rounds
    closed = max(oldest - first, 0)  # since the tally was taken
    chosen = np.zeros(max(rounds - oldest + 1, 0))
    begin, is_open = max(first - oldest, 0), is_own[closed:]
    chosen[begin : begin + len(is_open)] = is_open
    cuts = np.array([oldest, rounds + 1])
    return float(is_own[:closed].sum() + weigh_open_rounds(policy, cuts, now=now, chosen=chosen)[0])
