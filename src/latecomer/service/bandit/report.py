"""The report of a bandit, from its tally, its counters and its policy."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.service.bandit.lift import compare_arms
from latecomer.service.bandit.matured_decisions import weigh_open_rounds
from latecomer.service.bandit.tally import tally as columns
from latecomer.service.bandit.tally.open_rounds import UNIT
from latecomer.service.bandit.tally.tally import Tally
from latecomer.service.bandit_report import BanditReport, ChoiceReport, LiftReport, PeriodReport, RateReport
from latecomer.service.messages import Health

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit

COMMONEST = 8
"""Action ids in a report; all others are counted together."""


def make_report(bandit: "Bandit", *, now: int, shift: int = 0, health: Health | None = None) -> BanditReport:
    """Report on a bandit as of `now`, the store's time, which is `shift` microseconds ahead of the calendar."""
    bandit.count_notes()
    tally, policy, curve = bandit.tally, bandit.policy, bandit.policy.delay_curve
    totals = tally.buckets.counts.sum(axis=0)
    weights = None if curve is None else _weigh_periods(bandit, now)
    choices = _count_choices(tally)
    chosen = int(totals[columns.WITH_PROPENSITY])
    return BanditReport(
        name=bandit.info.name,
        policy=bandit.info.policy,
        window=bandit.info.window,
        created_at=bandit.info.created_at,
        at=datetime.fromtimestamp((now - shift) / 1e6, UTC),
        first_round=tally.first_round,
        rounds=bandit.rounds,
        open_decisions=bandit.rounds - int(policy.state.number("oldest")) + 1,
        decisions=int(totals[columns.DECISIONS]),
        conversions=int(totals[columns.CREDITED]),
        value=float(totals[columns.VALUES] / UNIT),
        rates=_compute_rates(tally, totals, weights),
        lift=_find_lift(tally, totals),
        period_seconds=tally.buckets.width,
        periods=_list_periods(tally, weights, [choice.id for choice in choices if choice.id is not None], shift),
        choices=choices,
        mean_propensity=float(totals[columns.PROPENSITIES] / UNIT / chosen) if chosen else None,
        unsure_share=float(totals[columns.EXPLORED] / chosen) if chosen else None,
        delay_curve=None if curve is None else np.column_stack(curve).tolist(),
        conversion_verdicts=bandit.counters.name_verdicts(bandit.counters.conversions),
        revocation_verdicts=bandit.counters.name_verdicts(bandit.counters.revocations),
        health=health,
    )


def _weigh_periods(bandit: "Bandit", now: int) -> Array:
    """Return Σ F̂(age) of the decisions of each period."""
    tally, oldest = bandit.tally, int(bandit.policy.state.number("oldest"))
    cuts = np.append(tally.find_first_rounds(), bandit.rounds + 1)
    closed = np.diff(np.minimum(cuts, max(oldest, tally.first_round)))
    weights: Array = closed + weigh_open_rounds(bandit.policy, cuts, now=now)
    return weights


def _compute_rates(tally: Tally, totals: Integers, weights: Array | None) -> RateReport:
    decisions, conversions = int(totals[columns.DECISIONS]), int(totals[columns.CREDITED])
    closed, closed_conversions, _ = tally.closed.sum(axis=0).tolist()
    matured = None if weights is None else float(weights.sum())
    rate = conversions / matured if matured else None
    coming = None if rate is None or matured is None else max(rate * (decisions - matured), 0.0)
    every = None if coming is None else conversions + coming
    return RateReport(
        naive=conversions / decisions if decisions else None,
        matured=rate,
        closed=closed_conversions / closed if closed else None,
        on_its_way=coming,
        share_on_its_way=coming / every if coming is not None and every else None,
        note=_explain_rates(decisions, matured),
    )


def _explain_rates(decisions: int, matured: float | None) -> str:
    if not decisions:
        return "there is no decision yet"
    if matured is None:
        return (
            "the naive rate counts conversions that are still on their way as lost; this policy has no delay curve to "
            "correct it with, so look at the rate of closed decisions"
        )
    return (
        f"of {decisions:,} decisions some are too young for their conversions to have arrived: by the delay curve they "
        f"count as {matured:,.0f}. The naive rate divides by all of them, and so takes what is on its way for lost"
    )


def _find_lift(tally: Tally, totals: Integers) -> LiftReport | None:
    """Compare the policy with the control; None where there is no control."""
    return compare_arms(tally.closed) if totals[columns.CONTROLS] else None


def _count_choices(tally: Tally) -> list[ChoiceReport]:
    """Count the choices of the commonest ids; the last entry is of all others, and of choices without an id."""
    chosen = tally.choices.counts.sum(axis=0)
    ranked = sorted(tally.slots.items(), key=lambda item: (-int(chosen[item[1]]), item[1]))[:COMMONEST]
    found = [
        ChoiceReport(id=label, decisions=int(chosen[slot]), conversions=int(tally.credited_by_slot[slot]))
        for label, slot in ranked
    ]
    rest = int(chosen.sum()) - sum(choice.decisions for choice in found)
    if rest:
        credited = int(tally.credited_by_slot.sum()) - sum(choice.conversions for choice in found)
        found.append(ChoiceReport(id=None, decisions=rest, conversions=credited))
    return found


def _list_periods(tally: Tally, weights: Array | None, ids: list[str], shift: int) -> list[PeriodReport]:
    starts = tally.buckets.starts[:-1].tolist()
    return [
        PeriodReport(
            start=datetime.fromtimestamp(start - shift / 1e6, UTC),
            decisions=row[columns.DECISIONS],
            controls=row[columns.CONTROLS],
            arrived=row[columns.ARRIVED],
            revoked=row[columns.REVOKED],
            conversions=row[columns.CREDITED],
            value=row[columns.VALUES] / UNIT,
            matured_decisions=None if weights is None else float(weights[number]),
            choices={label: int(tally.choices.counts[number, tally.slots[label]]) for label in ids},
        )
        for number, (start, row) in enumerate(zip(starts, tally.buckets.counts.tolist(), strict=True))
    ]
