"""The report of a bandit, from its tally, its counters and its policy."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from latecomer.core.state import Array, Integers
from latecomer.policies.base.policy import LinearPolicy
from latecomer.service.bandit.alarms import list_alarms
from latecomer.service.bandit.arm_rates import find_curve, find_known_curve, rate_arms
from latecomer.service.bandit.lift import ARMS, CONTEST, report_lift
from latecomer.service.bandit.matured_decisions import compute_matured_rate, count_young, weigh_open_rounds
from latecomer.service.bandit.segment_report import report_segments
from latecomer.service.bandit.tally.columns import Column
from latecomer.service.bandit.tally.exact_sums import join_parts
from latecomer.service.bandit.tally.open_rounds import UNIT
from latecomer.service.bandit.tally.tally import Tally
from latecomer.service.bandit.weight_report import report_weights
from latecomer.service.bandit_report import (
    BanditReport,
    ChoiceReport,
    ExplorationReport,
    LiftReport,
    PeriodReport,
    RateReport,
)
from latecomer.service.messages import BanditStats, Health

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit

COMMONEST = 8
"""Action ids in a report; all others are counted together."""


class Range(Struct, frozen=True):
    """The decisions of a range of time, in the store's microseconds, and the verdicts on reports about them."""

    since: int | None
    until: int | None
    tally: Tally
    conversion_verdicts: dict[str, int]
    revocation_verdicts: dict[str, int]


def make_report(
    bandit: "Bandit", *, now: int, shift: int = 0, health: Health | None = None, only: Range | None = None
) -> BanditReport:
    """Report on a bandit as of `now`, the store's time, which is `shift` microseconds ahead of the calendar.

    `only` has the decisions of a range of time; without it, the report is about all that were counted.
    """
    bandit.count_notes()
    policy, curve, counters = bandit.policy, bandit.policy.delay_curve, bandit.counters
    tally = bandit.tally if only is None else only.tally
    totals = tally.buckets.counts.sum(axis=0)
    decisions = int(totals[Column.DECISIONS])
    source, young = find_known_curve(bandit, tally, now=now), _count_young(bandit, tally, now)
    weights = None if source is None else _weigh_periods(source, tally, now)
    band = None if curve is None else policy.delay_band()
    choices = _count_choices(tally)
    ids = [choice.id for choice in choices if choice.id is not None]
    oldest = int(policy.state.number("oldest"))
    return BanditReport(
        name=bandit.info.name,
        policy=bandit.info.policy,
        dim=bandit.dim,
        window=bandit.info.window,
        unit=bandit.info.unit,
        created_at=bandit.info.created_at,
        at=_to_datetime(now, shift),
        first_round=tally.first_round,
        rounds=bandit.rounds,
        open_decisions=tally.first_round
        + decisions
        - min(max(oldest, tally.first_round), tally.first_round + decisions)
        if only
        else bandit.rounds - oldest + 1,
        decisions=decisions,
        conversions=int(totals[Column.CREDITED]),
        value=join_parts(totals[Column.VALUES :]),
        rates=_compute_rates(tally, totals, weights, young),
        lift=_find_lift(tally, totals, ARMS if bandit.contest is None else CONTEST),
        arms=rate_arms(bandit, tally, now=now),
        period_seconds=tally.buckets.width,
        periods=_list_periods(tally, weights, ids, shift),
        choices=choices,
        exploration=_describe_exploration(tally, totals),
        delay_curve=None if curve is None else np.column_stack(curve).tolist(),
        delay_band=None if band is None else np.column_stack(band).tolist(),
        conversion_verdicts=only.conversion_verdicts if only else counters.name_verdicts(counters.conversions),
        revocation_verdicts=only.revocation_verdicts if only else counters.name_verdicts(counters.revocations),
        segments=report_segments(tally, ids),
        weights=report_weights(bandit),
        since=_to_datetime(only.since, shift) if only and only.since is not None else None,
        until=_to_datetime(only.until, shift) if only and only.until is not None else None,
        health=None if health is None else structs.replace(health, quarantined={}),
        alarms=list_alarms(bandit, now=now, shift=shift, health=health),
    )


def _to_datetime(stamp: int, shift: int) -> datetime:
    return datetime.fromtimestamp((stamp - shift) / 1e6, UTC)


def make_stats(bandit: "Bandit", *, now: int, shift: int = 0, health: Health | None = None) -> BanditStats:
    """Return a bandit's stats with its alarms as of `now`."""
    return bandit.stats(list_alarms(bandit, now=now, shift=shift, health=health), now)


def _weigh_periods(policy: LinearPolicy, tally: Tally, now: int) -> Array:
    """Return Σ F̂(age) of the decisions of each period, by the policy's delay curve."""
    oldest, end = int(policy.state.number("oldest")), tally.first_round + tally.count_decisions()
    cuts = np.append(tally.find_first_rounds(), end)
    closed = np.diff(np.minimum(cuts, max(oldest, tally.first_round)))
    weights: Array = closed + weigh_open_rounds(policy, cuts, now=now)
    return weights


def _count_young(bandit: "Bandit", tally: Tally, now: int) -> int | None:
    """Count the decisions that are younger than the window; None where no policy has a delay curve."""
    policy = find_curve(bandit)
    return None if policy is None else count_young(policy, end=tally.first_round + tally.count_decisions(), now=now)


def _compute_rates(tally: Tally, totals: Integers, weights: Array | None, young: int | None) -> RateReport:
    decisions, conversions = int(totals[Column.DECISIONS]), int(totals[Column.CREDITED])
    closed, closed_conversions, *_ = tally.closed.sum(axis=0).tolist()
    matured = None if weights is None else float(weights.sum())
    rate = compute_matured_rate(conversions, matured)
    coming = None if rate is None or matured is None else max(rate * (decisions - matured), 0.0)
    every = None if coming is None else conversions + coming
    return RateReport(
        naive=conversions / decisions if decisions else None,
        matured=rate,
        closed=closed_conversions / closed if closed else None,
        on_its_way=coming,
        share_on_its_way=coming / every if coming is not None and every else None,
        note=_explain_rates(decisions, matured, young),
    )


def _explain_rates(decisions: int, matured: float | None, young: int | None) -> str:
    if not decisions:
        return "there is no decision yet"
    if young is None:
        return (
            "the naive rate counts conversions that are still on their way as lost; this policy has no delay curve to "
            "correct it with, so look at the rate of closed decisions"
        )
    open_ones = f"{young:,} {'decision is' if young == 1 else 'decisions are'} open"
    if matured is None:
        return (
            f"too little is known of the delays; {open_ones}. The naive rate counts what is on its way for them as lost"
        )
    if not young:
        return "they do not: every decision is old enough for its conversions to have arrived"
    if decisions - matured < 0.5:
        return f"they hardly do: {open_ones}, but by the delays so far their conversions have arrived"
    return (
        f"of {decisions:,} decisions some are too young for their conversions to have arrived: by the delay curve they "
        f"count as {matured:,.0f}. The naive rate divides by all of them, and so takes what is on its way for lost"
    )


def _find_lift(tally: Tally, totals: Integers, names: tuple[str, str]) -> LiftReport | None:
    """Compare the policy with the control, or the challenger with the champion; None where there is neither."""
    return report_lift(tally.closed[:2], names) if totals[Column.CONTROLS] else None


def _count_choices(tally: Tally) -> list[ChoiceReport]:
    """Count the choices of the commonest ids; the last entry is of all others, and of choices without an id."""
    chosen = tally.choices.counts.sum(axis=0)
    ranked = sorted(tally.slots.items(), key=lambda item: (-int(chosen[item[1]]), item[1]))[:COMMONEST]
    found = [
        ChoiceReport(
            id=label,
            decisions=int(chosen[slot]),
            conversions=int(tally.credited_by_slot[slot]),
            value=join_parts(tally.value_by_slot[slot]),
        )
        for label, slot in ranked
    ]
    rest = int(chosen.sum()) - sum(choice.decisions for choice in found)
    if rest:
        credited = int(tally.credited_by_slot.sum()) - sum(choice.conversions for choice in found)
        others = np.setdiff1d(np.arange(len(tally.value_by_slot)), [slot for _, slot in ranked])
        value = join_parts(tally.value_by_slot[others].sum(axis=0))
        found.append(ChoiceReport(id=None, decisions=rest, conversions=credited, value=value))
    return found


def _list_periods(tally: Tally, weights: Array | None, ids: Sequence[str], shift: int) -> list[PeriodReport]:
    starts = tally.buckets.starts[:-1].tolist()
    return [
        PeriodReport(
            start=datetime.fromtimestamp(start - shift / 1e6, UTC),
            decisions=row[Column.DECISIONS],
            controls=row[Column.CONTROLS],
            arrived=row[Column.ARRIVED],
            revoked=row[Column.REVOKED],
            conversions=row[Column.CREDITED],
            value=join_parts(row[Column.VALUES :]),
            matured_decisions=None if weights is None else float(weights[number]),
            choices={label: int(tally.choices.counts[number, tally.slots[label]]) for label in ids},
            mean_propensity=_divide(row[Column.PROPENSITIES] / UNIT, row[Column.WITH_PROPENSITY]),
        )
        for number, (start, row) in enumerate(zip(starts, tally.buckets.counts.tolist(), strict=True))
    ]


def _describe_exploration(tally: Tally, totals: Integers) -> ExplorationReport:
    known = int(totals[Column.WITH_PROPENSITY])
    return ExplorationReport(
        mean_propensity=_divide(float(totals[Column.PROPENSITIES]) / UNIT, known),
        unsure_share=_divide(float(totals[Column.EXPLORED]), known),
        propensity_counts=tally.propensities.tolist(),
    )


def _divide(total: float, count: int) -> float | None:
    return total / count if count else None
