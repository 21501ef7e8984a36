"""Conversions with amounts or ids of their own, and returns: live, and applied from the log to the same bits.

The policy keeps the baskets (`policies.base.baskets`). The log has each report with its amount, in the unit of the
reward, and with the credit that its decision had after it, so that a reader of the log need not aggregate.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from latecomer.core.conversions import ACCEPTED, DUPLICATE, REVOKED
from latecomer.core.state import UNSTAMPED, Array, Integers
from latecomer.errors import InputError
from latecomer.policies.base import bulk
from latecomer.policies.base.converting_policy import join_verdicts
from latecomer.policies.base.decision import Verdict
from latecomer.policies.base.reward import NOT_GIVEN, NotGiven
from latecomer.service.bandit import events
from latecomer.service.bandit.attribution import attribute_conversions
from latecomer.service.bandit.reports import (
    check_target,
    compute_arrivals,
    digest_report,
    pack_reports,
    parse_occurrences,
)
from latecomer.service.bandit.verdict_list import VerdictList, make_early_warnings
from latecomer.service.messages import Conversion, Correction, Revocation

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


class Purchases:
    """The conversions of one bandit that have amounts or ids, and their returns."""

    def __init__(self, bandit: "Bandit") -> None:
        self._bandit, self._policy = bandit, bandit.policy

    def takes(self, reports: Sequence[Conversion | Revocation]) -> bool:
        """Tell whether reports are not plain ones, of a decision that has one conversion."""
        policy = self._policy
        return policy.keeps_baskets or len(policy.baskets) > 0 or any(one.conversion_id is not None for one in reports)

    def forget_ids(self, round: int) -> None:
        """Forget the secrets of decision ids up to a round, but for decisions that can still be corrected."""
        self._bandit.ids.forget(min([round, *(kept - 1 for kept in self._policy.baskets.rounds)]))

    def forget_counted(self) -> None:
        """Let the tally and the stages forget the rounds that can no longer be corrected, where it has many."""
        credited = self._bandit.tally.credited
        if credited is not None and credited.is_full:
            oldest = min(self._policy.baskets.rounds, default=self._policy.rounds)
            self._bandit.stages.forget_credited(oldest)
            credited.forget_before(oldest)

    # ---- live ----

    def convert(self, conversions: Sequence[Conversion], *, now: int, shift: int) -> tuple[VerdictList, bytes]:
        """Apply conversions in their order; return the verdicts and the events for the log."""
        bandit = self._bandit
        values = enumerate(NOT_GIVEN if one.value is None else one.value for one in conversions)
        amounts = np.array([self._check_amount(value, place, "conversion") for place, value in values], np.float64)
        digests = [digest_report(one, place) for place, one in enumerate(conversions)]
        occurred = parse_occurrences(conversions, now=now, shift=shift)
        attributed = attribute_conversions(bandit, conversions, compute_arrivals(occurred, now), now)
        if attributed is None:
            rounds = np.array([bandit.find_round(one.decision_id or "") for one in conversions], np.int64)
            is_joined = np.zeros(len(rounds), np.bool_)
        else:
            rounds, places, is_joined = attributed.rounds, attributed.places, attributed.is_joined
            amounts, occurred = amounts[places], occurred[places]
            digests = [digests[place] for place in places.tolist()]
        bandit.has_unlogged_change = True
        arrivals = compute_arrivals(occurred, now)
        found = self.credit(rounds, amounts, digests, arrivals, np.full(len(rounds), now), is_joined)
        early = bandit.counters.add_purchases(found)
        bandit.monitor.note_reports(rounds, self.find_watched(rounds, found), now, bandit.rounds)
        if bandit.tally.note_purchases(rounds, found.credits, found.verdicts, now):
            bandit.count_notes()
        records = pack_reports(events.PURCHASES, events.PURCHASE, found.verdicts, rounds, occurred, now)
        records["value"], records["credit"], records["joined"] = amounts, found.credits, is_joined
        records["conversion"] = [np.void(digest) for digest in digests]
        answers, data = bandit.finish_reports(records, found.verdicts, now, unknown=(1, 0))
        answers.warnings = make_early_warnings(early.tolist())
        return answers if attributed is None else attributed.join(answers, bandit.deferrals.id_of), data

    def _check_amount(self, value: float | NotGiven, place: int, report: str) -> float:
        try:
            return self._policy.reward.check_amount(value, f"value of {report} {place}")
        except InputError as error:
            error.field = f"[{place}].value"
            raise

    def revoke(self, revocations: Sequence[Revocation], *, now: int, shift: int) -> tuple[VerdictList, bytes]:
        """Take conversions back in their order; return the verdicts and the events for the log."""
        for place, one in enumerate(revocations):
            check_target(one, place)
        digests = [
            digest_report(one, place) if one.conversion_id is not None else None
            for place, one in enumerate(revocations)
        ]
        occurred = parse_occurrences(revocations, now=now, shift=shift)
        self._bandit.has_unlogged_change = True
        answers, data = VerdictList(), b""
        for report, digest, moment in zip(revocations, digests, occurred, strict=True):
            verdicts, more = self._revoke_one(report, digest, np.array([moment]), now)
            answers.append(join_verdicts(verdicts))
            data += more
        return answers, data

    def _revoke_one(
        self, report: Revocation, digest: bytes | None, occurred: Integers, now: int
    ) -> tuple[list[Verdict], bytes]:
        bandit = self._bandit
        if report.decision_id is None:
            arrival = int(compute_arrivals(occurred, now)[0])
            found = [] if digest is None else self.find_rounds(digest, arrival, now)
        else:
            found = [bandit.find_round(report.decision_id)]
        rounds = np.array(found or [0], np.int64)
        occurred = np.repeat(occurred, len(rounds))
        verdicts, credits = self.take_back(
            rounds, [digest] * len(rounds), compute_arrivals(occurred, now), np.full(len(rounds), now)
        )
        bandit.counters.add_revocations(verdicts)
        if bandit.tally.note_returns(rounds, credits, verdicts, now):
            bandit.count_notes()
        if digest is None:
            records = pack_reports(events.REVOCATIONS, events.REVOCATION, verdicts, rounds, occurred, now)
        else:
            records = pack_reports(events.RETURNS, events.RETURN, verdicts, rounds, occurred, now)
            records["credit"], records["conversion"] = credits, np.void(digest)
        answers, data = bandit.finish_reports(records, verdicts, now, unknown=(0, 1))
        return list(answers), data

    def find_rounds(self, digest: bytes, arrival: int, now: int) -> list[int]:
        """Return the rounds that a conversion is credited to, by the digest of its id."""
        stamps = (UNSTAMPED, UNSTAMPED) if self._bandit.in_rounds else (arrival, now)
        return self._policy.find_conversion(digest, *stamps)

    def correct(self, corrections: Sequence[Correction], *, now: int, shift: int) -> tuple[VerdictList, bytes]:
        """Replace the credits of decisions in their order; return the verdicts and the events for the log."""
        bandit = self._bandit
        values = enumerate(one.value for one in corrections)
        amounts = np.array([self._check_amount(value, place, "correction") for place, value in values], np.float64)
        occurred = parse_occurrences(corrections, now=now, shift=shift)
        rounds = np.array([bandit.find_round(one.decision_id) for one in corrections], np.int64)
        bandit.has_unlogged_change = True
        arrivals = compute_arrivals(occurred, now)
        verdicts, credits = self.replace_credits(rounds, amounts, arrivals, np.full(len(rounds), now))
        if bandit.tally.note_corrections(rounds, credits, verdicts, now):
            bandit.count_notes()
        records = pack_reports(events.CORRECTIONS, events.CORRECTION, verdicts, rounds, occurred, now)
        records["value"], records["credit"] = amounts, credits
        return bandit.finish_reports(records, verdicts, now, unknown=(0, 0))

    # ---- changes to the policy, live and replayed ----

    def credit(
        self,
        rounds: Integers,
        amounts: Array,
        digests: Sequence[bytes],
        arrivals: Integers,
        reported: Integers,
        is_joined: npt.NDArray[np.bool_],
    ) -> bulk.Credited:
        """Apply conversions in their order."""
        reports = rounds, amounts, digests, arrivals, reported, is_joined
        for other in self._bandit.policies[1:]:
            bulk.convert_amounts(other, *reports)
        return bulk.convert_amounts(self._policy, *reports)

    def take_back(
        self, rounds: Integers, digests: Sequence[bytes | None], arrivals: Integers, reported: Integers
    ) -> tuple[Integers, Array]:
        """Take conversions back in their order: verdicts by number, and the credits that the rounds then have."""
        verdicts, credits = np.empty(len(rounds), np.int64), np.zeros(len(rounds))
        reports = zip(rounds.tolist(), arrivals.tolist(), reported.tolist(), digests, strict=True)
        for place, (round_, *report) in enumerate(reports):
            verdicts[place] = self._bandit.revoke_one(round_, *report)
            if verdicts[place] == ACCEPTED:
                basket = self._policy.baskets.find(round_)
                credits[place] = REVOKED if basket is None else basket.credit
        return verdicts, credits

    def replace_credits(
        self, rounds: Integers, amounts: Array, arrivals: Integers, reported: Integers
    ) -> tuple[Integers, Array]:
        """Replace credits in their order: verdicts by number, and the credits that the rounds then have."""
        verdicts, credits = np.empty(len(rounds), np.int64), np.zeros(len(rounds))
        reports = zip(rounds.tolist(), amounts.tolist(), arrivals.tolist(), reported.tolist(), strict=True)
        for place, report in enumerate(reports):
            for other in self._bandit.policies[1:]:
                bulk.correct(other, *report)
            verdicts[place], credits[place] = bulk.correct(self._policy, *report)
        return verdicts, credits

    def find_watched(self, rounds: Integers, found: bulk.Credited) -> Integers:
        """Return verdicts for the monitor, which counts a decision's first conversion alone."""
        is_later = (found.verdicts == ACCEPTED) & ~found.is_first
        return self._bandit.leave_out_stragglers(rounds, np.where(is_later, DUPLICATE, found.verdicts))


def correct_credits(
    bandit: "Bandit", corrections: Sequence[Correction], *, now: int, shift: int = 0
) -> tuple[VerdictList, bytes]:
    """Replace what decisions of a bandit are credited with; see `Purchases.correct`."""
    return bandit.purchases.correct(corrections, now=now, shift=shift)
