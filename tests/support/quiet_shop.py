"""A shop straight on a monitor, without a policy or a store: thousands of weeks can be played."""

from collections.abc import Sequence

import numpy as np

from latecomer.core.conversions import ACCEPTED
from latecomer.core.state import Integers
from latecomer.service.bandit.monitor.grid import Grid
from latecomer.service.bandit.monitor.monitor import Monitor

HOUR, DAY = 3_600_000_000, 86_400_000_000
WEEK = 7 * DAY
START = 1_800_000_000_000_000


class QuietShop:
    """Decisions by a Poisson process with a daily rhythm; conversions after exponential delays.

    Parameters
    ----------
    seed
        Of everything that is random.
    daily
        Decisions a day.
    rate
        The share of decisions that convert.
    delay
        The mean delay in microseconds, one for all actions or one for each of three.
    window
        In microseconds.
    """

    def __init__(
        self,
        seed: int,
        *,
        daily: float = 500.0,
        rate: float = 0.1,
        delay: float | Sequence[float] = 12.0 * HOUR,
        window: int = 2 * DAY,
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.daily, self.rate, self.delay, self.window = daily, rate, delay, window
        self.monitor = Monitor(Grid(window, in_rounds=False), 3, 0)
        self.now, self._rounds = START, 0
        self._slots = np.zeros(1, np.int64)
        self._coming = np.zeros((0, 2), np.int64)

    def play(self, span: int, *, feed: bool = True, drop: float = 0.0) -> None:
        """Let time pass; where the feed is down, conversions are lost. `drop` is the share that is lost anyway."""
        stamps = self._draw_decisions(span)
        rounds = self._rounds + 1 + np.arange(len(stamps))
        actions = self.rng.integers(0, 3, len(stamps))
        self._slots = np.concatenate([self._slots, 2 + actions])
        converts = self.rng.random(len(stamps)) < self.rate
        means = np.broadcast_to(self.delay, 3)[actions[converts]]
        arrivals = stamps[converts] + self.rng.exponential(means).astype(np.int64)
        inside = arrivals - stamps[converts] <= self.window
        coming = np.concatenate([self._coming, np.column_stack([rounds[converts], arrivals])[inside]])
        self.now += span
        due = coming[coming[:, 1] < self.now]
        self._coming = coming[coming[:, 1] >= self.now]
        if feed:
            due = due[self.rng.random(len(due)) >= drop]
            self._report(due[np.argsort(due[:, 1], kind="stable")], stamps)
        self._rounds += len(stamps)
        self.monitor.note_decisions(stamps, int(rounds[0]) if len(rounds) else 1, self._draw_sets(len(stamps)))
        self.monitor.count_notes(lambda rounds: self._slots[rounds], ["no id", "other ids", "a", "b", "c"])

    def _draw_decisions(self, span: int) -> Integers:
        count = self.rng.poisson(2.0 * self.daily * span / DAY)
        stamps = np.sort(self.now + self.rng.integers(0, span, count))
        brightness = 0.5 - 0.45 * np.cos(2.0 * np.pi * (stamps % DAY) / DAY)
        return stamps[self.rng.random(count) < brightness]

    def _draw_sets(self, count: int) -> "np.ndarray[tuple[int, int], np.dtype[np.int16]]":
        sets = np.zeros((count, 5), np.int16)
        sets[:, :3] = self.rng.normal(5000.0, 2000.0, (count, 3))
        sets[:, 3], sets[:, 4] = 9000, 3
        return sets

    def _report(self, due: Integers, stamps: Integers) -> None:
        made = self._rounds + np.searchsorted(stamps, due[:, 1], "right")
        self.monitor.note_reports(due[:, 0], np.full(len(due), ACCEPTED), due[:, 1], made)
