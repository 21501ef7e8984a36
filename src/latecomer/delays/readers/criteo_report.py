"""Results of the Criteo reader: the delays, and an account of every row."""

from enum import StrEnum

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from latecomer.delays.laws.empirical import Empirical


class Skipped(StrEnum):
    """Reasons to skip a row; the first that holds, in this order."""

    COLUMNS = "wrong number of columns"
    NUMBER = "a number that does not parse"
    FLAG = "conversion is neither 0 nor 1"
    NO_TIME = "converted, but a timestamp is missing"
    NEGATIVE = "converted before it was shown"


class CriteoReport(Struct, frozen=True):
    """Every row once: rows = converted + unconverted + skipped for a reason."""

    rows: int
    converted: int
    unconverted: int
    skipped: dict[Skipped, int]
    """A count for every reason, 0 included."""

    def __str__(self) -> str:
        total = sum(self.skipped.values())
        lines = [
            f"{self.rows:,} rows read: {self.converted:,} converted, {self.unconverted:,} not, {total:,} skipped",
            *(f"  {count:,} × {reason}" for reason, count in self.skipped.items() if count),
        ]
        return "\n".join(lines)


class CriteoDelays(Struct, frozen=True, eq=False):
    """The delay of every converted row, in the file's order, and the report."""

    seconds: npt.NDArray[np.int64]
    report: CriteoReport

    def law(self, *, seconds_per_round: float = 100.0) -> Empirical:
        """The delays as an empirical law in whole rounds."""
        return Empirical.from_times(self.seconds, unit=seconds_per_round)
