"""The fates of decisions: when each converted, with what value, and whether that was revoked."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import Array, Integers
from latecomer.service.bandit import events
from latecomer.service.bandit.reports import compute_arrivals

_CONVERTED = np.dtype([("round", "<i8"), ("arrival", "<i8"), ("value", "<f8")])


class Fates:
    """The accepted conversions and revocations of a log, 24 and 8 bytes each, found by their rounds."""

    def __init__(self, payloads: Iterable[events.Payload]) -> None:
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
        self._converted = np.concatenate(converted)
        self._converted.sort(order="round")
        self._revoked = np.sort(np.concatenate(revoked))

    def find(self, rounds: Integers) -> tuple[npt.NDArray[np.bool_], Integers, Array, npt.NDArray[np.bool_]]:
        """Return, for each round, whether it converted, when, with what value, and whether that was revoked."""
        found = np.zeros(len(rounds), _CONVERTED)
        places = np.searchsorted(self._converted["round"], rounds)
        inside = places < len(self._converted)
        found[inside] = self._converted[places[inside]]
        return found["round"] == rounds, found["arrival"], found["value"], np.isin(rounds, self._revoked)
