"""The fates of decisions: when each converted, with what value, and whether that was revoked."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import Array, Integers
from latecomer.service.bandit import events
from latecomer.service.bandit.credit_changes import CreditChange, changes_credits, read_credit_changes
from latecomer.service.bandit.reports import compute_arrivals

_CONVERTED = np.dtype([("round", "<i8"), ("arrival", "<i8"), ("value", "<f8")])


class _Change(NamedTuple):
    """The fate of a decision whose credit has changed; without an arrival, that of its plain conversion stays."""

    arrival: int | None = None
    value: float | None = None
    is_revoked: bool = False

    def follow(self, change: CreditChange) -> "_Change":
        """Return the fate after a further change; the first conversion is the one that counts as arrived."""
        arrival = change.arrival if self.arrival is None and change.is_conversion else self.arrival
        is_revoked = change.credit < 0.0
        return _Change(arrival, self.value if is_revoked else change.credit, is_revoked)


_UNCHANGED = _Change()


class Fates:
    """The accepted conversions and revocations of a log, 24 and 8 bytes each, found by their rounds.

    Where conversions have amounts or ids, a decision has the credit of its latest report.
    """

    def __init__(self, payloads: Iterable[events.Payload]) -> None:
        changed: dict[int, _Change] = {}
        converted, revoked = [np.empty(0, _CONVERTED)], [np.empty(0, np.int64)]
        for payload in payloads:
            reports = payload.records(events.CONVERSION)
            reports = reports[reports["verdict"] == ACCEPTED]
            found = np.empty(len(reports), _CONVERTED)
            found["round"], found["value"] = reports["round"], reports["value"]
            found["arrival"] = compute_arrivals(reports["occurred"], reports["stamp"])
            converted.append(found)
            if changes_credits(payload):
                for change in read_credit_changes(payload):
                    changed[change.round] = changed.get(change.round, _UNCHANGED).follow(change)
                continue
            reports = payload.records(events.REVOCATION)
            rounds = np.array(reports["round"][reports["verdict"] == ACCEPTED])
            revoked.append(rounds)
            for round_ in rounds.tolist() if changed else ():
                if round_ in changed:
                    changed[round_] = changed[round_]._replace(is_revoked=True)
        arrived = [
            (round_, one.arrival, one.value or 0.0) for round_, one in changed.items() if one.arrival is not None
        ]
        self._converted = np.concatenate([*converted, np.array(arrived, _CONVERTED)])
        self._converted.sort(order="round")
        corrected = {
            round_: one.value for round_, one in changed.items() if one.arrival is None and one.value is not None
        }
        plain = self._converted["round"].tolist() if corrected else []
        for place, round_ in enumerate(plain):
            if round_ in corrected:  # a corrected conversion that has been pruned is in no place
                self._converted["value"][place] = corrected[round_]
        taken_back = [round_ for round_, one in changed.items() if one.is_revoked]
        others = np.setdiff1d(np.concatenate(revoked), np.array([*changed], np.int64))
        self._revoked = np.union1d(others, np.array(taken_back, np.int64))

    def find(self, rounds: Integers) -> tuple[npt.NDArray[np.bool_], Integers, Array, npt.NDArray[np.bool_]]:
        """Return, for each round, whether it converted, when, with what value, and whether that was revoked."""
        found = np.zeros(len(rounds), _CONVERTED)
        places = np.searchsorted(self._converted["round"], rounds)
        inside = places < len(self._converted)
        found[inside] = self._converted[places[inside]]
        return found["round"] == rounds, found["arrival"], found["value"], np.isin(rounds, self._revoked)
