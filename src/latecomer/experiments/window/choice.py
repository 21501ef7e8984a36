"""The rule: of the windows that cost about the same, the shortest that keeps most conversions.

Costs are compared pair by pair on common random numbers. Windows cost *about the same* where they differ by no more
than 5 % of what playing at random loses. The preferred window, the shortest that keeps 80 % of the conversions, is
known from the delays alone; the simulation has a veto, and uses it only where the preferred window is *shown* to cost
more. So chance can move the advice only where a cost lies next to the tolerance.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from latecomer.core.state import Array

MOST = 0.8
"""The share of conversions that a window should keep."""
TOLERANCE = 0.05
"""Windows within this of each other cost about the same; a share of what playing at random loses."""
_ERROR = 0.05
"""The chance, at most, that anything said at any look is wrong, were means of runs normal (there it is a heuristic)."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The windows, shortest first, and the choice among them."""

    cheapest: int
    excess: Array
    """Mean cost over the cheapest's, run by run."""
    excess_error: Array
    """The standard error of that."""
    tolerance: float
    is_same: Flags
    """Shown to cost no more than the tolerance over any other."""
    is_dearer: Flags
    """Shown to cost more than the tolerance over some other."""
    chosen: int
    keeps_most: bool
    """The chosen window keeps 80 % of the conversions; else none does that costs about the same."""

    @property
    def is_clear(self) -> bool:
        """More runs would not change the choice."""
        return bool(self.is_same[self.chosen])

    @property
    def alike(self) -> tuple[int, int]:
        """The first and the last of the windows around the chosen one that, by the means, cost about the same.

        It is the chosen one alone where that one, by the means, costs more than the cheapest.
        """
        low = high = self.chosen
        near = self.excess <= self.tolerance
        if not near[self.chosen]:
            return low, high
        while low > 0 and near[low - 1]:
            low -= 1
        while high + 1 < len(near) and near[high + 1]:
            high += 1
        return low, high

    @property
    def are_alike_shown(self) -> bool:
        """The runs show of every window in that range, and not by the means alone, that it costs about the same."""
        low, high = self.alike
        return bool(self.is_same[low : high + 1].all())


def compare_windows(costs: Array, uniform: Array, shares: Array, *, looks: int) -> Comparison:
    """Compare every window with every other, and choose.

    Parameters
    ----------
    costs
        (windows, runs), shortest window first; in a run all windows meet the same chance.
    uniform
        (runs,): the cost of playing at random.
    shares
        The share of the conversions that each window keeps.
    looks
        How often the same runs, and more, are looked at: error is shared out over looks and pairs (Bonferroni).
    """
    count, runs = costs.shape
    differences = costs[:, None, :] - costs[None, :, :]
    gaps, errors = differences.mean(axis=2), differences.std(axis=2, ddof=1) / np.sqrt(runs)
    quantile = stdtrit(runs - 1, 1.0 - _ERROR / (looks * max(1, count * (count - 1))))
    tolerance = TOLERANCE * float(uniform.mean())
    is_same = (gaps + quantile * errors <= tolerance).all(axis=1)
    is_dearer = (gaps - quantile * errors > tolerance).any(axis=1)
    cheapest, chosen = int(np.argmin(costs.mean(axis=1))), choose_window(shares, is_dearer)
    return Comparison(
        cheapest=cheapest,
        excess=gaps[:, cheapest],
        excess_error=errors[:, cheapest],
        tolerance=tolerance,
        is_same=is_same,
        is_dearer=is_dearer,
        chosen=chosen,
        keeps_most=bool(shares[chosen] >= MOST),
    )


def choose_window(shares: Array, is_dearer: Flags) -> int:
    """The shortest window that keeps most conversions and is not shown to cost more; else the longest that is not."""
    allowed = np.flatnonzero(~is_dearer)  # the cheapest is, whatever the others do
    enough = allowed[shares[allowed] >= MOST]
    return int(enough[0] if len(enough) else allowed[-1])
