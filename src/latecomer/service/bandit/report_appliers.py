"""Reports as the log has them, applied to a bandit: conversions, revocations and stages, with its verdicts on them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.service.bandit import events
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit.reports import compute_arrivals


class Reports:
    """Conversions or revocations, and this bandit's verdicts on them."""

    kind: int

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        self._bandit, self._numbers = bandit, payload.numbers(self.kind)
        self._records = payload.records(self.kind)
        self._rounds = copy_column(self._records["round"])
        self._arrivals = compute_arrivals(self._records["occurred"], self._records["stamp"])
        self._reported = copy_column(self._records["stamp"])
        self._verdicts = np.empty(len(self._records), np.int64)

    def note(self, part: slice) -> None:
        """Note reports for the tally; in the order of all events where they may change credits."""

    def finish(self, payload: Payload) -> None:
        """Write the verdicts back where they are others, and count them."""
        if np.array_equal(self._records["verdict"], self._verdicts):
            return
        self._records["verdict"] = self._verdicts
        payload.replace(self._numbers, self._records)


class Conversions(Reports):
    """Conversions of one decision each, with values in [0, 1]."""

    kind = events.CONVERSION

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        super().__init__(bandit, payload)
        self._values, self._delays = copy_column(self._records["value"]), np.empty(len(self._records), np.int64)
        self._watched = np.empty(len(self._records), np.int64)
        self._made = bandit.rounds + np.searchsorted(payload.numbers(events.DECISION), self._numbers)

    def apply(self, part: slice) -> None:
        """Apply the reports of a run."""
        self._verdicts[part], self._delays[part] = self._bandit.apply_conversions(
            self._rounds[part], self._values[part], self._arrivals[part], self._reported[part]
        )
        self._watched[part] = self._bandit.leave_out_stragglers(self._rounds[part], self._verdicts[part])

    def finish(self, payload: Payload) -> None:
        """Write the verdicts back where they are others, and count them."""
        super().finish(payload)
        self._bandit.counters.add_conversions(self._verdicts, self._delays)
        self._bandit.monitor.note_reports(self._rounds, self._watched, self._records["stamp"], self._made)

    def note(self, part: slice) -> None:
        """Note the reports of a run for the tally."""
        rounds, values, verdicts = self._rounds[part], self._values[part], self._verdicts[part]
        self._bandit.tally.note_conversions(rounds, values, verdicts, self._reported[part])


class Revocations(Reports):
    """Revocations of all that a decision has."""

    kind = events.REVOCATION

    def apply(self, part: slice) -> None:
        """Apply the reports of a run."""
        self._verdicts[part] = self._bandit.apply_revocations(
            self._rounds[part], self._arrivals[part], self._reported[part]
        )

    def finish(self, payload: Payload) -> None:
        """Write the verdicts back where they are others, and count them."""
        super().finish(payload)
        self._bandit.counters.add_revocations(self._verdicts)

    def note(self, part: slice) -> None:
        """Note the reports of a run for the tally."""
        self._bandit.tally.note_revocations(self._rounds[part], self._verdicts[part], self._reported[part])


class CreditChanges(Reports):
    """Conversions with amounts or ids, or what corrects them: the log has the credits that follow."""

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        super().__init__(bandit, payload)
        self._credits = np.zeros(len(self._records))

    def finish(self, payload: Payload) -> None:
        """Write the verdicts back where they are others, and count them."""
        if not np.array_equal(self._records["credit"], self._credits):
            self._records["credit"] = self._credits
            self._records["verdict"] = self._verdicts
            payload.replace(self._numbers, self._records)
        super().finish(payload)


class Purchases(CreditChanges):
    """Conversions with amounts or ids."""

    kind = events.PURCHASE

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        super().__init__(bandit, payload)
        self._digests, self._amounts = self._records["conversion"].tolist(), copy_column(self._records["value"])
        self._is_joined = self._records["joined"] > 0
        self._made = bandit.rounds + np.searchsorted(payload.numbers(events.DECISION), self._numbers)

    def apply(self, part: slice) -> None:
        """Apply the reports of a run."""
        purchases, rounds = self._bandit.purchases, self._rounds[part]
        found = purchases.credit(
            rounds,
            self._amounts[part],
            self._digests[part],
            self._arrivals[part],
            self._reported[part],
            self._is_joined[part],
        )
        self._verdicts[part], self._credits[part] = found.verdicts, found.credits
        self._bandit.counters.add_purchases(found)
        watched = purchases.find_watched(rounds, found)
        self._bandit.monitor.note_reports(rounds, watched, self._reported[part], self._made[part])

    def note(self, part: slice) -> None:
        """Note the reports of a run for the tally."""
        rounds, credits, verdicts = self._rounds[part], self._credits[part], self._verdicts[part]
        self._bandit.tally.note_purchases(rounds, credits, verdicts, self._reported[part])


class Returns(CreditChanges):
    """Revocations of one conversion, by its id."""

    kind = events.RETURN

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        super().__init__(bandit, payload)
        self._digests = self._records["conversion"].tolist()

    def apply(self, part: slice) -> None:
        """Apply the reports of a run."""
        self._verdicts[part], self._credits[part] = self._bandit.purchases.take_back(
            self._rounds[part], self._digests[part], self._arrivals[part], self._reported[part]
        )

    def note(self, part: slice) -> None:
        """Note the reports of a run for the tally."""
        rounds, credits, verdicts = self._rounds[part], self._credits[part], self._verdicts[part]
        self._bandit.tally.note_returns(rounds, credits, verdicts, self._reported[part])

    def finish(self, payload: Payload) -> None:
        """Write the verdicts back where they are others, and count them."""
        super().finish(payload)
        self._bandit.counters.add_revocations(self._verdicts)


class Corrections(CreditChanges):
    """Corrections of all that a decision is credited with."""

    kind = events.CORRECTION

    def __init__(self, bandit: Bandit, payload: Payload) -> None:
        super().__init__(bandit, payload)
        self._amounts = copy_column(self._records["value"])

    def apply(self, part: slice) -> None:
        """Apply the reports of a run."""
        self._verdicts[part], self._credits[part] = self._bandit.purchases.replace_credits(
            self._rounds[part], self._amounts[part], self._arrivals[part], self._reported[part]
        )

    def note(self, part: slice) -> None:
        """Note the reports of a run for the tally."""
        rounds, credits, verdicts = self._rounds[part], self._credits[part], self._verdicts[part]
        self._bandit.tally.note_corrections(rounds, credits, verdicts, self._reported[part])


class Stages(Reports):
    """Stages that decisions have reached."""

    kind = events.STAGE

    def apply(self, part: slice) -> None:
        """Apply the reports of a run."""
        names = [name.decode() for name in self._records["stage"][part].tolist()]
        self._verdicts[part] = self._bandit.stages.apply(
            self._rounds[part], names, self._arrivals[part], self._reported[part]
        )


def copy_column(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy a record's field, which is neither aligned nor contiguous, for the kernels."""
    return np.array(column)
