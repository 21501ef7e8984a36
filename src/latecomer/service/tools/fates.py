"""The fates of decisions: when each converted, with what value, and whether that was revoked."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import Array, Integers
from latecomer.service.bandit import events
from latecomer.service.bandit.credit_changes import read_credit_changes
from latecomer.service.bandit.reports import compute_arrivals

_CONVERTED = np.dtype([("round", "<i8"), ("arrival", "<i8"), ("value", "<f8")])


class Fates:
    """The accepted conversions and revocations of a log, 24 and 8 bytes each, found by their rounds.

    Where conversions have amounts or ids, a decision has the credit of its latest report.
    """

    def __init__(self, payloads: Iterable[events.Payload]) -> None:
        changed: dict[int, tuple[int, float, bool]] = {}
        converted, revoked = [np.empty(0, _CONVERTED)], [np.empty(0, np.int64)]
        for payload in payloads:
            reports = payload.records(events.CONVERSION)
            reports = reports[reports["verdict"] == ACCEPTED]
            found = np.empty(len(reports), _CONVERTED)
            found["round"], found["value"] = reports["round"], reports["value"]
            found["arrival"] = compute_arrivals(reports["occurred"], reports["stamp"])
            converted.append(found)
            reports = payload.records(events.REVOCATION)
            revoked.append(np.array(reports["round"][reports["verdict"] == ACCEPTED]))
            for change in read_credit_changes(payload):
                arrival, value, _ = changed.get(change.round, (change.arrival, 0.0, False))
                is_revoked = change.credit < 0.0
                changed[change.round] = (arrival, value if is_revoked else change.credit, is_revoked)
        again = [round_ for round_, (_, _, is_revoked) in changed.items() if not is_revoked]
        if changed:
            pairs = [(round_, arrival, value) for round_, (arrival, value, _) in changed.items()]
            converted.append(np.array(pairs, _CONVERTED))
            revoked.append(np.array([round_ for round_, (*_, is_revoked) in changed.items() if is_revoked], np.int64))
        self._converted = np.concatenate(converted)
        self._converted.sort(order="round")
        self._revoked = np.setdiff1d(np.concatenate(revoked), again)

    def find(self, rounds: Integers) -> tuple[npt.NDArray[np.bool_], Integers, Array, npt.NDArray[np.bool_]]:
        """Return, for each round, whether it converted, when, with what value, and whether that was revoked."""
        found = np.zeros(len(rounds), _CONVERTED)
        places = np.searchsorted(self._converted["round"], rounds)
        inside = places < len(self._converted)
        found[inside] = self._converted[places[inside]]
        return found["round"] == rounds, found["arrival"], found["value"], np.isin(rounds, self._revoked)
