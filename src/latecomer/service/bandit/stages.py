"""Stages: earlier signals of a decision, such as a click or a cart, kept in the log and counted.

A decision reaches a stage once, while its conversions would be taken. Of each stage the table counts the decisions that
reached it, and how many of these converted: as they are now, or were when their window and grace had passed. A policy
that has stages of its own (`policies.base.surrogates`) is told of these.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from latecomer.core.conversions import ACCEPTED, DUPLICATE, LATE, UNKNOWN
from latecomer.core.state import UNSTAMPED, Integers
from latecomer.errors import InputError
from latecomer.policies.base.decision import VERDICTS
from latecomer.policies.base.surrogates import MOST_STAGES, STAGE_NAME
from latecomer.service.bandit import events
from latecomer.service.bandit.reports import compute_arrivals, pack_reports, parse_occurrences
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.messages import StageCounts, StageReport
from latecomer.validation import short_repr, to_plain_text

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


class Stages:
    """The stages that the decisions of one bandit have reached."""

    def __init__(self, bandit: "Bandit") -> None:
        self._bandit = bandit
        self._names: list[str] = []
        self._reached: dict[int, int] = {}
        """By round that the policy holds, a bit for each stage."""
        self._closed: Integers = np.zeros((MOST_STAGES, 2), np.int64)
        """By stage, decisions that reached it and are held no more, and conversions of these."""

    @property
    def _taught(self) -> list[str]:
        """The stages that policies learn from."""
        return [name for policy in self._bandit.policies for name in policy.stages]

    # ---- live ----

    def report(self, reports: Sequence[StageReport], *, now: int, shift: int) -> tuple[VerdictList, bytes]:
        """Take reports of stages in their order; return the verdicts and the events for the log."""
        bandit = self._bandit
        names = [self._check(report, place) for place, report in enumerate(reports)]
        self._check_count(names)
        occurred = parse_occurrences(reports, now=now, shift=shift)
        rounds = np.array([bandit.find_round(report.decision_id) for report in reports], np.int64)
        bandit.has_unlogged_change = True
        verdicts = self.apply(rounds, names, compute_arrivals(occurred, now), np.full(len(rounds), now))
        records = pack_reports(events.STAGES, events.STAGE, verdicts, rounds, occurred, now)
        records["stage"] = [name.encode() for name in names]
        bandit.stamp = now
        data = records[(rounds > 0) & (rounds <= bandit.rounds)].tobytes()
        return VerdictList(VERDICTS[verdict] for verdict in verdicts.tolist()), data or events.NOTHING

    @staticmethod
    def _check(report: StageReport, place: int) -> str:
        if not isinstance(report.stage, str) or not STAGE_NAME.fullmatch(report.stage):
            raise InputError(
                f"stage of report {place} must be 1 to 32 letters, digits, '.', '_' or '-'; got "
                f"{short_repr(report.stage)}",
                field=f"[{place}].stage",
            )
        return to_plain_text(report.stage)

    def _check_count(self, names: Sequence[str]) -> None:
        known = list(dict.fromkeys([*self._taught, *self._names]))
        for place, name in enumerate(names):
            if name not in known:
                known.append(name)
            if len(known) > MOST_STAGES:
                raise InputError(
                    f"a bandit has at most {MOST_STAGES} stages; got {name!r} besides", field=f"[{place}].stage"
                )

    # ---- live and replayed ----

    def apply(self, rounds: Integers, names: Sequence[str], arrivals: Integers, reported: Integers) -> Integers:
        """Note stages in their order, and tell the policies of theirs; return verdicts by number."""
        reports = zip(rounds.tolist(), names, arrivals.tolist(), reported.tolist(), strict=True)
        return np.array([self._apply_one(*report) for report in reports], np.int64)

    def _apply_one(self, round_: int, name: str, arrival: int, reported: int) -> int:
        if self._bandit.in_rounds:
            arrival = reported = UNSTAMPED
        state = self._bandit.policy.state
        verdict = state.judge_conversion(round_, max(reported, state.number("now")))
        if verdict in (LATE, UNKNOWN):
            return verdict
        if name not in self._names:
            self._names.append(name)
        bit = 1 << self._names.index(name)
        if self._reached.get(round_, 0) & bit:
            return DUPLICATE
        self._reached[round_] = self._reached.get(round_, 0) | bit
        for policy in self._bandit.policies:
            if name in policy.stages:
                policy.reach_stage(round_, name, arrival, reported)
        return ACCEPTED

    def forget(self, kept: int, credited: Integers) -> None:
        """Forget rounds before `kept`, of which these were credited."""
        converted = set(credited.tolist())
        for round_ in [round_ for round_ in self._reached if round_ < kept]:
            self._add(self._closed, self._reached.pop(round_), is_converted=round_ in converted)

    def count(self) -> dict[str, StageCounts]:
        """Return the counts by stage; the notes of the tally must have been counted."""
        totals = self._closed.copy()
        rounds = np.array(sorted(self._reached), np.int64)
        for round_, is_converted in zip(rounds.tolist(), self._bandit.tally.are_credited(rounds).tolist(), strict=True):
            self._add(totals, self._reached[round_], is_converted=is_converted)
        rates = self._bandit.policy.stage_rates
        return {
            name: StageCounts(decisions, conversions, rates[name].surrogate if name in rates else None)
            for name, (decisions, conversions) in zip(self._names, totals.tolist(), strict=False)
        }

    @staticmethod
    def _add(totals: Integers, reached: int, *, is_converted: bool) -> None:
        for slot in range(MOST_STAGES):
            if reached >> slot & 1:
                totals[slot] += (1, is_converted)

    # ---- snapshots ----

    def to_dict(self) -> dict[str, Any]:
        """Return the table for a snapshot; nothing where no stage was reported."""
        if not self._names:
            return {}
        return {"names": self._names, "reached": list(self._reached.items()), "closed": self._closed.tolist()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the table of a snapshot."""
        if saved:
            self._names, self._reached = list(saved["names"]), dict(map(tuple, saved["reached"]))
            self._closed[:] = saved["closed"]
