"""The test whether conversions have stopped: a cumulative sum of evidence, with a bound on false alarms.

The hypothesis is that conversions arrive at half the expected rate or more, as a Poisson process; the alternative, that
they have fallen to a twentieth. A cell with Λ expected and N arrived adds the logarithm of the likelihood ratio,
(½ − 1/20)·Λ − N·ln 10, to the evidence W, which does not fall below 0. From any cell on, the product of the ratios is a
supermartingale under the hypothesis: it ever reaches A with probability 1/A at most (Ville). W can begin to rise in any
cell, so it reaches ln(100·K) within a week of K cells with probability K/(100·K) = 1 % at most.

Conversions that come in batches, or not at night, are no Poisson process. A silence that ended by itself shows in the
peaks of the evidence: the threshold is at least twice the second highest of the last ones. That is a heuristic. One
outage does not change the threshold; a rhythm does, after its second time.
"""

import math
from typing import Any

from msgspec import Struct

LEAST_CONVERSIONS = 30.0
"""Conversions that the expectation must rest on."""
SLACK, FALLEN = 0.5, 0.05
"""Shares of the expected rate: the hypothesis, and the alternative."""
_PER_ARRIVAL = math.log(SLACK / FALLEN)
PEAKS = 8
_CAP = 3.0
"""Evidence above the threshold that is not kept, so that the alarm ends soon after conversions have come back."""


class Silence(Struct, kw_only=True):
    """The evidence that conversions are missing, since cell `since`, the first with evidence."""

    evidence: float = 0.0
    threshold: float = math.inf
    is_ringing: bool = False
    since: int = 0
    since_stamp: int = 0
    expected: float = 0.0
    """Conversions that were expected since then."""
    arrived: int = 0
    uncapped: float = 0.0
    peak: float = 0.0
    peaks: list[tuple[int, float]] = []
    """Cells and heights of earlier peaks, the latest last."""

    def add(self, cell: int, stamp: int, expected: float, arrived: int, *, least: float, oldest_peak: int) -> None:
        """Add a cell's evidence.

        Parameters
        ----------
        cell, stamp
            The cell, and the time of its begin.
        expected, arrived
            Conversions that were expected, and that came.
        least
            The threshold where no rhythm is known.
        oldest_peak
            Peaks before this cell are forgotten.
        """
        step = (SLACK - FALLEN) * expected - arrived * _PER_ARRIVAL
        if self.evidence == 0.0:
            if step <= 0.0:
                return
            self.since, self.since_stamp, self.expected, self.arrived = cell, stamp, 0.0, 0
            self.uncapped = self.peak = 0.0
        self.expected += expected
        self.arrived += arrived
        self.threshold = max(least, 2.0 * self._find_usual_peak(oldest_peak))
        self.evidence = min(max(self.evidence + step, 0.0), self.threshold + _CAP)
        self.uncapped += step
        self.peak = max(self.peak, self.uncapped)
        if self.evidence >= self.threshold:
            self.is_ringing = True
        elif self.evidence <= 0.5 * self.threshold:
            self.is_ringing = False
        if self.evidence == 0.0 and self.peak >= 0.5 * least:
            self.peaks = [*self.peaks, (cell, self.peak)][-PEAKS:]

    def _find_usual_peak(self, oldest: int) -> float:
        recent = sorted(peak for cell, peak in self.peaks if cell >= oldest)
        return recent[-2] if len(recent) > 1 else 0.0

    def copy(self) -> "Silence":
        """Return a copy that can be changed."""
        return Silence(**self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for a snapshot."""
        return {name: getattr(self, name) for name in self.__struct_fields__}

    @staticmethod
    def from_dict(saved: dict[str, Any]) -> "Silence":
        """Return the evidence of a snapshot."""
        return Silence(**{**saved, "peaks": [(cell, peak) for cell, peak in saved["peaks"]]})
