"""Stages: earlier signals of a decision, such as a click or a cart, kept in the log and counted.

A decision reaches a stage once, while its conversions would be taken. Of each stage the table counts the decisions that
reached it, and how many of these are credited now. A decision is counted for good once its credit can no longer change:
when it has none as its window and grace have passed, or when it cannot be taken back any more. So the counts follow
from the events, whenever they are taken. A policy that has stages of its own (`policies.base.surrogates`) is told of
these.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

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
        self._credited: Integers = np.empty((0, 2), np.int64)
        """Rounds that the policy does not hold and that are credited, or were: round and bits."""
        self._closed: Integers = np.zeros((MOST_STAGES, 2), np.int64)
        """By stage, decisions that reached it and whose credit cannot change any more, and conversions of these."""

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
        """Forget the rounds before `kept`, of which these are credited: those can still be taken back where any can."""
        gone = sorted(round_ for round_ in self._reached if round_ < kept)
        found = np.array([(round_, self._reached.pop(round_)) for round_ in gone], np.int64).reshape(-1, 2)
        is_credited = np.isin(found[:, 0], credited)
        if self._bandit.tally.credited is not None:
            self._credited = np.concatenate([self._credited, found[is_credited]])
            found, is_credited = found[~is_credited], is_credited[~is_credited]
        self._add(self._closed, found[:, 1], is_credited)

    def forget_credited(self, round_: int) -> None:
        """Forget the credited rounds before this one, whose credits cannot change any more."""
        is_gone = self._credited[:, 0] < round_
        gone, self._credited = self._credited[is_gone], self._credited[~is_gone]
        self._add(self._closed, gone[:, 1], self._bandit.tally.are_credited(gone[:, 0]))

    def count(self) -> dict[str, StageCounts]:
        """Return the counts by stage; the notes of the tally must have been counted."""
        totals = self._closed.copy()
        held = np.array(sorted(self._reached.items()), np.int64).reshape(-1, 2)
        known = np.concatenate([self._credited, held])
        self._add(totals, known[:, 1], self._bandit.tally.are_credited(known[:, 0]))
        rates = self._bandit.policy.stage_rates
        return {
            name: StageCounts(decisions, conversions, rates[name].surrogate if name in rates else None)
            for name, (decisions, conversions) in zip(self._names, totals.tolist(), strict=False)
        }

    @staticmethod
    def _add(totals: Integers, reached: Integers, is_credited: npt.NDArray[np.bool_]) -> None:
        """Add decisions to the totals, by the bits of the stages that each has reached."""
        has_reached = reached[:, None] >> np.arange(MOST_STAGES) & 1
        totals[:, 0] += has_reached.sum(axis=0)
        totals[:, 1] += has_reached[is_credited].sum(axis=0)

    # ---- snapshots ----

    def to_dict(self) -> dict[str, Any]:
        """Return the table for a snapshot; nothing where no stage was reported."""
        if not self._names:
            return {}
        reached, credited = list(self._reached.items()), self._credited.tolist()
        return {"names": self._names, "reached": reached, "credited": credited, "closed": self._closed.tolist()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the table of a snapshot."""
        if saved:
            self._names, self._reached = list(saved["names"]), dict(map(tuple, saved["reached"]))
            self._credited = np.array(saved["credited"], np.int64).reshape(-1, 2)
            self._closed[:] = saved["closed"]
