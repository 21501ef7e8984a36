"""A seeded shop whose conversions come by a feed that can be switched off, on a store with a clock of its own."""

from pathlib import Path
from typing import Any

import numpy as np
from fake_clocks import HOUR, FakeClocks

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.messages import Alarm, Conversion
from latecomer.service.store import Store

RATES = {"banner": 0.15, "bundle": 0.3, "coupon": 0.5}
NAME = "offers"


class FedShop:
    """Ten decisions an hour by default; conversions come an hour later on average, all within the window of 6 h."""

    def __init__(self, path: Path, *, seed: int = 7, policy: str = "Uniform", hourly: float = 10.0, **options: Any):
        self.rng, self.clocks = np.random.default_rng(seed), FakeClocks()
        self.path, self.hourly = path, hourly
        self.store = Store.open(path, clock=self.clocks, create=True, **options)
        self.store.create(NAME, BanditSpec(dim=3, window="6h", policy=policy, parameters={"seed": seed}))
        self._waiting: list[tuple[int, str]] = []
        self.delays = dict.fromkeys(RATES, 1.0)
        """Mean delays in hours."""
        self.scale = 1.0
        """Times which actions are offered."""

    def play(self, hours: float, *, feed: bool = True) -> None:
        """Let time pass with decisions; where the feed is down, conversions wait in it."""
        end = self.clocks.elapsed + int(hours * HOUR)
        while True:
            step = int(self.rng.exponential(HOUR / self.hourly))
            if self.clocks.elapsed + step > end:
                self.clocks.advance(end - self.clocks.elapsed)
                break
            self.clocks.advance(step)
            if feed:
                self._report()
            answer, _ = self.store.decide(NAME, self.scale * np.eye(3), list(RATES))
            label = str(answer.action_id)
            if self.rng.random() < RATES[label]:
                delay = int(self.rng.exponential(self.delays[label] * HOUR))
                self._waiting.append((self.clocks.elapsed + delay, answer.decision_id))
        if feed:
            self._report()

    def _report(self) -> None:
        due = [decision for moment, decision in self._waiting if moment <= self.clocks.elapsed]
        self._waiting = [item for item in self._waiting if item[0] > self.clocks.elapsed]
        if due:
            self.store.convert(NAME, [Conversion(decision) for decision in due])

    def lose_waiting(self) -> None:
        """Lose what the feed has not reported."""
        self._waiting = []

    def alarms(self) -> dict[str, Alarm]:
        """Return the bandit's alarms by their ids."""
        return {alarm.id: alarm for alarm in self.store.stats(NAME).alarms if alarm.bandit == NAME}

    def reopen(self, **options: Any) -> None:
        """Close the store, and open it again."""
        self.store.close()
        self.store = Store.open(self.path, clock=self.clocks, **options)

    def monitor(self) -> dict[str, Any]:
        """Return the monitor's state."""
        bandit = self.store.read_bandit(NAME)
        bandit.count_notes()
        return bandit.monitor.to_dict()
