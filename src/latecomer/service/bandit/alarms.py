"""The alarms of a bandit: what its statistics mean to somebody who has to act, and what to do."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import numpy as np

from latecomer.core.conversions import ACCEPTED, UNKNOWN
from latecomer.service.bandit.monitor.monitor import Finding
from latecomer.service.bandit.tally.columns import Column
from latecomer.service.bandit.tally.open_rounds import UNIT
from latecomer.service.messages import Alarm, Health
from latecomer.service.store_alarms import list_store_alarms

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit

_LEAST_REPORTS = 50
_MOST_EARLY, _MOST_UNKNOWN = 0.01, 0.2
"""Shares of the reports: of accepted ones that occurred before their decision, and of all that no decision has."""
_CHOICES, _LEAST_EXPLORED = 1000, 0.001
"""Exploration has collapsed where, of at least so many choices, less than this share is left to other actions."""

BANDIT_ALARMS = (
    "conversions_stopped",
    "delays_drift",
    "delays_differ_by_action",
    "window_too_short",
    "exploration_collapsed",
    "features_out_of_range",
    "conversions_before_decisions",
    "unknown_decisions",
)
"""The ids of the alarms that a bandit can have."""


def list_alarms(bandit: "Bandit", *, now: int, shift: int = 0, health: Health | None = None) -> list[Alarm]:
    """List the alarms of a bandit as of `now`, the store's time, and those of its store; the critical ones first.

    Other bandits are counted and not named: whoever may read this one need not know of them.
    """
    bandit.count_notes()
    found = [
        *_check_silence(bandit, now, shift),
        *_check_looks(bandit, shift),
        *_check_exploration(bandit),
        *_check_features(bandit, shift),
        *_check_reports(bandit),
        *([] if health is None else list_store_alarms(health, lambda _: False)),
    ]
    return sorted(found, key=lambda alarm: alarm.severity != "critical")


def _check_silence(bandit: "Bandit", now: int, shift: int) -> Iterator[Alarm]:
    silence = bandit.monitor.look_ahead(now)
    if silence.is_ringing:
        came = "no conversion has come" if not silence.arrived else f"only {silence.arrived:,} conversions have come"
        yield _make_alarm(
            bandit,
            "conversions_stopped",
            f"{came} since then, where the open decisions and their delays let {silence.expected:,.0f} expect",
            "look at what reports conversions: is it running, does it reach this server, are its reports refused (the "
            "verdicts)? What it can report again before the windows close is not lost",
            since=_to_moment(silence.since_stamp, shift),
            severity="critical",
        )


def _check_looks(bandit: "Bandit", shift: int) -> Iterator[Alarm]:
    for id_, finding in bandit.monitor.findings.items():
        sentence, remedy = _WORDS[id_](finding)
        yield _make_alarm(bandit, id_, sentence, remedy, since=_to_moment(finding.since, shift))


def _word_drift(finding: Finding) -> tuple[str, str]:
    return (
        f"conversions of recent decisions come {finding.named} than those of earlier ones (p = {finding.p_value:.1g} "
        f"on {finding.conversions:,} conversions)",
        "where nothing has changed on purpose, look at what reports conversions; until the new delays are learnt, "
        "rates of young decisions are biased, and a policy that waits for its window is not",
    )


def _word_actions(finding: Finding) -> tuple[str, str]:
    return (
        f"conversions do not come equally late for all actions, the latest for {finding.named!r} (p = "
        f"{finding.p_value:.1g} on {finding.conversions:,} conversions)",
        "the matured, imputed and logistic policies favour actions that convert soon: compare closed decisions, or use "
        "a policy that waits, or one with a tight width",
    )


def _word_window(finding: Finding) -> tuple[str, str]:
    if finding.named == "late":
        sentence = f"{finding.share:.1%} of the conversions since the last look came after their window had closed"
    else:
        sentence = f"the last tenth of the window still brings {finding.share:.1%} of the conversions inside it"
    return (
        f"{sentence}: it cuts off many more",
        "choose a longer window: `latecomer window` compares them, and `latecomer log replay --window` keeps what is "
        "learnt",
    )


_WORDS = {"delays_drift": _word_drift, "delays_differ_by_action": _word_actions, "window_too_short": _word_window}


def _check_exploration(bandit: "Bandit") -> Iterator[Alarm]:
    policy = bandit.policy
    if not (policy.algorithm.is_randomised or policy.algorithm.scores_are_probabilities):
        return  # its propensities do not tell how it explores: those that it knows are 1
    counts = bandit.tally.buckets.counts[::-1, [Column.WITH_PROPENSITY, Column.PROPENSITIES]]
    totals = np.cumsum(counts, axis=0)
    enough = np.flatnonzero(totals[:, 0] >= _CHOICES)
    if not len(enough):
        return
    choices, propensities = totals[enough[0]].tolist()
    explored = 1.0 - propensities / UNIT / choices
    if explored < _LEAST_EXPLORED:
        yield _make_alarm(
            bandit,
            "exploration_collapsed",
            f"of the last {choices:,} choices of the policy, {explored:.2%} was left to other actions: what they would "
            "earn today is not learnt, and other policies cannot be evaluated on the log",
            "give the policy a floor (parameters: floor 0.02), and look whether every set has more than one action",
        )


def _check_features(bandit: "Bandit", shift: int) -> Iterator[Alarm]:
    ranges = bandit.monitor.ranges
    if ranges.finding:
        yield _make_alarm(
            bandit,
            "features_out_of_range",
            ranges.finding,
            "look at units, scales and missing values where features are made; a change that is intended is learnt "
            "after a week",
            since=_to_moment(ranges.since, shift),
        )


def _check_reports(bandit: "Bandit") -> Iterator[Alarm]:
    counts, early = bandit.counters.conversions.tolist(), int(bandit.counters.before_decision[0])
    if early >= _LEAST_REPORTS and early > _MOST_EARLY * counts[ACCEPTED]:
        yield _make_alarm(
            bandit,
            "conversions_before_decisions",
            f"{early:,} of {counts[ACCEPTED]:,} accepted conversions occurred before their decisions, as they say: "
            "their delays are unknown",
            "look at the zone and the clock of occurred_at where conversions are reported",
        )
    total = sum(counts)
    if counts[UNKNOWN] >= _LEAST_REPORTS and counts[UNKNOWN] > _MOST_UNKNOWN * total:
        yield _make_alarm(
            bandit,
            "unknown_decisions",
            f"{counts[UNKNOWN]:,} of {total:,} reports of conversions name decisions that this bandit has not made",
            "report conversions to the bandit that decided, by the decision_id that it gave",
        )


def _make_alarm(
    bandit: "Bandit",
    id: str,
    sentence: str,
    remedy: str,
    *,
    since: datetime | None = None,
    severity: Literal["warning", "critical"] = "warning",
) -> Alarm:
    return Alarm(id=id, severity=severity, bandit=bandit.info.name, since=since, sentence=sentence, remedy=remedy)


def _to_moment(stamp: int, shift: int) -> datetime:
    """Return a stamp of the store as a time of the calendar."""
    return datetime.fromtimestamp((stamp - shift) / 1e6, UTC)
