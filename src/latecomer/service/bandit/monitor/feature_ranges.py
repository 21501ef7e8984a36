"""The range of features: learnt from the sets of actions that were offered, and compared with the latest ones.

Of every sixteenth decision, the summary of its set is taken: the mean action, and how far actions lie from it. Once a
week's worth has been learnt, each 64 of them are compared with it: coordinates outside the learnt range by more than
half its width, a mean norm that has changed by a factor of three, and coordinates that were mostly there and have
vanished. These are rules of thumb, set so wide that a change of season does not raise them. A change that has lasted
for a week is taken for intended, and the range is learnt anew. The sets offered do not depend on what the policy
chooses, so that learning is not taken for a change.
"""

from typing import Any

import numpy as np

from latecomer.core.action_summary import ONE, Shorts
from latecomer.core.state import Array
from latecomer.service.bandit.monitor.grid import WEEK

EVERY = 16
"""One decision in so many is looked at."""
BATCH = 64
"""Sets that are compared at once."""
_OUTSIDE = 8
"""Sets of a batch that must lie outside."""
_MARGIN, _FACTOR, _MOSTLY = 0.5, 3.0, 0.5
_SUMS = ("low", "high", "present", "numbers")


class FeatureRanges:
    """Ranges of each coordinate of the mean action, and the mean norm, of all sets so far.

    Parameters
    ----------
    dim
        The number of coordinates.
    """

    def __init__(self, dim: int) -> None:
        self.since = 0
        """The time of the first batch that showed something."""
        self.finding = ""
        """The finding of the latest batch; empty where it was in order."""
        self._batch: list[bytes] = []
        self._forget(dim, 0)

    def _forget(self, dim: int, stamp: int) -> None:
        """Begin to learn at a time."""
        self.low, self.high = np.full(dim, np.inf), np.full(dim, -np.inf)
        self.present = np.zeros(dim)
        """Sets in which each coordinate of the mean action was not 0."""
        self.numbers = np.zeros(2)
        """The number of sets, and the sum of their norms."""
        self._first = stamp

    def add(self, summary: bytes, stamp: int) -> None:
        """Add the summary of a set, d + 2 short numbers, offered at a time."""
        self._first = self._first or stamp
        self._batch.append(summary)
        if len(self._batch) < BATCH:
            return
        shorts: Shorts = np.frombuffer(b"".join(self._batch), np.int16).reshape(BATCH, -1)
        self._batch = []
        means, spread = shorts[:, :-2] / ONE, shorts[:, -2] / ONE
        norms = np.sqrt((means**2).sum(axis=1) + spread)
        has_learnt = self.numbers[0] > 0.0 and stamp - self._first >= WEEK
        finding = self._compare(means, norms) if has_learnt else ""
        if finding and not self.finding:
            self.since = stamp
        self.finding = finding
        if finding and stamp - self.since >= WEEK:
            self._forget(means.shape[1], stamp)
            self.finding = ""
        if not self.finding:
            self._learn(means, norms)

    def _compare(self, means: Array, norms: Array) -> str:
        margin = _MARGIN * (self.high - self.low) + 1.0 / ONE
        outside = (means < self.low - margin) | (means > self.high + margin)
        if np.count_nonzero(outside.any(axis=1)) >= _OUTSIDE:
            worst = np.argsort(-outside.sum(axis=0), kind="stable")[:3]
            named = ", ".join(str(i) for i in worst.tolist() if outside[:, i].any())
            return f"coordinates {named} of the actions lie outside the range that was learnt"
        usual, now = float(self.numbers[1] / self.numbers[0]), float(norms.mean())
        if not usual / _FACTOR <= now <= usual * _FACTOR:
            return f"the norm of actions is {now:.3g} on average, where it was {usual:.3g}"
        vanished = (self.present > _MOSTLY * self.numbers[0]) & ~means.any(axis=0)
        if vanished.any():
            named = ", ".join(str(i) for i in np.flatnonzero(vanished)[:3].tolist())
            return f"coordinates {named} of the actions have become 0 for all actions, and were mostly not"
        return ""

    def _learn(self, means: Array, norms: Array) -> None:
        self.low, self.high = np.minimum(self.low, means.min(axis=0)), np.maximum(self.high, means.max(axis=0))
        self.present += np.count_nonzero(means, axis=0)
        self.numbers += len(means), norms.sum()

    def to_dict(self) -> dict[str, Any]:
        """Return the ranges for a snapshot."""
        plain = {"first": self._first, "since": self.since, "finding": self.finding, "batch": list(self._batch)}
        return plain | {name: getattr(self, name).tobytes() for name in _SUMS}

    def restore(self, saved: dict[str, Any]) -> None:
        """Take the ranges of a snapshot."""
        self._first, self.since, self.finding = saved["first"], saved["since"], saved["finding"]
        self._batch = list(saved["batch"])
        for name in _SUMS:
            setattr(self, name, np.frombuffer(saved[name], np.float64).copy())
