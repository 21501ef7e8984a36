"""Metrics of each bandit for Prometheus: counts, delays, alarms, values, and choices by action id."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from latecomer.service.bandit.alarms import BANDIT_ALARMS
from latecomer.service.store_alarms import STORE_ALARMS

if TYPE_CHECKING:
    from latecomer.service.bandit.measures import BanditMeasures
    from latecomer.service.messages import Alarm, BanditCounts


def collect_bandits(every: "Sequence[BanditMeasures]", store_alarms: "Sequence[Alarm]") -> Iterable[Metric]:
    """Yield the metrics of every bandit, and the alarms of their store."""
    yield from _collect_counts([found.counts for found in every])
    yield _collect_alarms(every, store_alarms)
    expected = CounterMetricFamily(
        "latecomer_expected_conversions",
        "Conversions that the open decisions and their delays let expect until now.",
        labels=["bandit"],
    )
    value = GaugeMetricFamily("latecomer_value", "Values of conversions, less what was revoked.", labels=["bandit"])
    for found in every:
        expected.add_metric([found.counts.name], found.expected_conversions)
        value.add_metric([found.counts.name], found.value)
    yield from (expected, value)
    yield from _collect_actions(every)


def _collect_alarms(every: "Sequence[BanditMeasures]", store_alarms: "Sequence[Alarm]") -> Metric:
    """Return 1 for each alarm that rings and 0 for each other; those of the store have an empty bandit."""
    family = GaugeMetricFamily("latecomer_alarm", "1 where the alarm rings.", labels=["bandit", "alarm"])
    groups = [("", STORE_ALARMS, store_alarms), *((found.counts.name, BANDIT_ALARMS, found.alarms) for found in every)]
    for name, ids, alarms in groups:
        ringing = {alarm.id for alarm in alarms}
        for id_ in ids:
            family.add_metric([name, id_], float(id_ in ringing))
    return family


def _collect_actions(every: "Sequence[BanditMeasures]") -> Iterable[Metric]:
    labels = ["bandit", "action"]
    choices = CounterMetricFamily("latecomer_choices", "Decisions by action id; empty: all others.", labels=labels)
    conversions = GaugeMetricFamily(
        "latecomer_action_conversions", "Conversions of an action id, less what was revoked.", labels=labels
    )
    value = GaugeMetricFamily(
        "latecomer_action_value", "Values of an action id's conversions, less what was revoked.", labels=labels
    )
    for found in every:
        for label, sums in found.actions.items():
            named = [found.counts.name, label]
            choices.add_metric(named, sums.decisions)
            conversions.add_metric(named, sums.conversions)
            value.add_metric(named, sums.value)
    return choices, conversions, value


def _collect_counts(every: "Sequence[BanditCounts]") -> Iterable[Metric]:
    decisions = CounterMetricFamily("latecomer_decisions", "Decisions made.", labels=["bandit"])
    verdicts = CounterMetricFamily("latecomer_verdicts", "Verdicts given.", labels=["bandit", "of", "verdict"])
    early = CounterMetricFamily(
        "latecomer_conversions_before_decision",
        "Accepted conversions that occurred before their decisions, as they say.",
        labels=["bandit"],
    )
    pending = GaugeMetricFamily("latecomer_pending", "Decisions that may still convert.", labels=["bandit"])
    drift = GaugeMetricFamily("latecomer_inverse_drift", "max |V V⁻¹ - I| at its last check.", labels=["bandit"])
    refactored = CounterMetricFamily("latecomer_refactorisations", "Fresh factorisations of V.", labels=["bandit"])
    delays = HistogramMetricFamily(
        "latecomer_delay", "Delays of accepted conversions, in seconds or rounds as the window is.", labels=["bandit"]
    )
    for stats in every:
        name = [stats.name]
        decisions.add_metric(name, stats.rounds)
        early.add_metric(name, stats.before_decision)
        pending.add_metric(name, stats.pending)
        drift.add_metric(name, stats.drift)
        refactored.add_metric(name, stats.refactorisations)
        for of, counts in (("conversion", stats.conversions), ("revocation", stats.revocations)):
            for verdict, count in counts.items():
                verdicts.add_metric([stats.name, of, verdict], count)
        delays.add_metric(name, _cumulative(stats), sum_value=stats.delay_sum)
    return decisions, verdicts, early, pending, drift, refactored, delays


def _cumulative(stats: "BanditCounts") -> list[tuple[str, float]]:
    """Return the count of all delays up to each edge, as Prometheus wants them."""
    edges = [*(f"{edge:g}" for edge in stats.delay_edges), "+Inf"]
    total, buckets = 0, []
    for edge, count in zip(edges, stats.delay_counts, strict=True):
        total += count
        buckets.append((edge, float(total)))
    return buckets
