"""The ladder of windows to compare, each about twice the one before."""

import numpy as np

from latecomer.delays.distribution import Floats

SECOND, MINUTE, HOUR, DAY = 1.0, 60.0, 3600.0, 86_400.0

LADDER: Floats = np.concatenate(
    [
        np.array([1, 2, 4, 8, 15, 30]) * SECOND,
        np.array([1, 2, 4, 8, 15, 30]) * MINUTE,
        np.array([1, 2, 4, 8, 16]) * HOUR,
        np.array([1, 2, 4, 7, 14, 30, 60, 90, 180, 365]) * DAY,
    ]
)

_LEAST_SHARE = 0.01
_NEARLY = 1.02


def choose_windows(ends: Floats, shares: Floats) -> Floats:
    """Choose the windows to compare: those of the ladder that keep enough conversions, and the longest of all.

    The longest is all that is known of; where the ladder has hardly more, it is that, and keeps all there is too.
    """
    longest = float(ends[-1])
    place = int(np.searchsorted(LADDER, longest / _NEARLY))
    between = LADDER[:place]
    kept = shares[np.searchsorted(ends, between)] >= _LEAST_SHARE
    next_up = float(LADDER[place]) if place < len(LADDER) else longest
    is_near = longest <= next_up <= longest * _NEARLY
    return np.append(between[kept], next_up if is_near else longest)
