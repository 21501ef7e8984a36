"""The confidence band of a policy's delay curve, from the counts that it keeps."""

import numpy as np

from latecomer.core.delay_curve import BINS, reference_round
from latecomer.core.state import Array
from latecomer.delays.estimation.bands import beta_product_band
from latecomer.policies.base.compiled_state import CompiledState

_COUNTS = {"bin_pointers", "events", "at_risk"}


def estimate_delay_band(state: CompiledState, level: float) -> tuple[Array, Array] | None:
    """Return the lower and the upper end at every edge, mid-P; None where the algorithm keeps no such counts.

    Delays that no round is old enough for cannot be known: both ends are 1 there, as the curve is.
    """
    if not _COUNTS.issubset(state.record.dtype.names or ()):
        return None
    # the ends of bins ascend, so those that the reference round has reached are the first ones
    reached = int((state.array("bin_pointers") > reference_round(state.number("rounds"))).sum())
    low, high = np.ones(BINS + 1), np.ones(BINS + 1)
    if reached:
        events, at_risk = state.array("events")[:reached], state.array("at_risk")[:reached]
        low[1 : reached + 1], high[1 : reached + 1] = beta_product_band(events, at_risk, level=level)
        low[0] = high[0] = 0.0
    return low, high
