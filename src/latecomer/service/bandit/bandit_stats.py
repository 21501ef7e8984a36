"""The statistics of a bandit: counts, and what its policy has learned."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from latecomer.policies.base import bulk
from latecomer.service.bandit.arm_rates import rate_arms
from latecomer.service.messages import Alarm, BanditCounts, BanditStats

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


def count_events(bandit: "Bandit") -> BanditCounts:
    """Return what has happened, without computing anything of the policy."""
    policy, counters = bandit.policy, bandit.counters
    drift, refactorisations = bulk.drift(policy)
    return BanditCounts(
        name=bandit.info.name,
        rounds=policy.rounds,
        pending=policy.pending,
        conversions=counters.name_verdicts(counters.conversions),
        revocations=counters.name_verdicts(counters.revocations),
        before_decision=int(counters.before_decision[0]),
        delay_edges=counters.edges.tolist(),
        delay_counts=counters.delays.tolist(),
        delay_sum=counters.delay_sum,
        capped=int(counters.capped[0]),
        drift=drift,
        frozen=policy.is_frozen,
        refactorisations=refactorisations,
        deferred={name: getattr(policy.deferred, name) for name in ("waiting", "activated", "expired")},
    )


def make_bandit_stats(bandit: "Bandit", alarms: Sequence[Alarm], *, now: int) -> BanditStats:
    """Return the counts, what the policy has learned by `now`, and the alarms that the caller has found."""
    policy, unit = bandit.policy, bandit.info.unit
    curve, band = policy.delay_curve, policy.delay_band()
    bandit.count_notes()
    return BanditStats(
        **msgspec.structs.asdict(bandit.count()),
        theta_hat=policy.theta_hat.tolist(),
        width=policy.width,
        pending_width=policy.pending_width,
        delay_curve=None if curve is None else np.column_stack(curve).tolist(),
        delay_band=None if band is None else np.column_stack(band).tolist(),
        alarms=list(alarms),
        stages=bandit.stages.count(),
        value=bandit.tally.value * (1.0 if unit is None else unit.scale),
        unit=None if unit is None else unit.name,
        contest=None if bandit.contest is None else bandit.contest.compare(bandit.tally),
        arms=rate_arms(bandit, bandit.tally, now=now),
    )
