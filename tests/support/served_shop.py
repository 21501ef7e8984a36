"""The seeded shop through a real server whose clock is played: visitors, purchases, and an outage of the feed."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np
from fake_clocks import DAY, HOUR
from played_clock import PlayedClock
from seeded_shop import OFFERS, RATES, draw_visitor, make_spec
from servers import Server

PATH = "/v1/bandits/offers"
WINDOW = "2d"


class Course(NamedTuple):
    """Decisions over days; the feed is down from `out` to `back`, in days; rates are `factor` times the shop's."""

    rounds: int
    days: float
    out: float
    back: float
    factor: float
    policy: str = "recommended"
    parameters: Mapping[str, Any] = MappingProxyType({})


class ServedShop:
    """Visitors who come at random, convert ever later, and are reported by a feed that keeps what it could not send."""

    def __init__(self, server: Server, clock: PlayedClock, course: Course, *, seed: int = 3) -> None:
        self._server, self._clock, self._course = server, clock, course
        self._rng = np.random.default_rng(seed)
        self._step = int(course.days * DAY / course.rounds)
        self._waiting: list[tuple[int, str]] = []
        self.kinds: list[str] = []
        """The visitors' kinds, by round."""
        self.reported: list[int] = []
        """Times of the reports, in microseconds since the begin."""
        spec = msgspec.to_builtins(make_spec(window=WINDOW))
        spec |= {"policy": course.policy, "parameters": spec["parameters"] | course.parameters}
        server.http.put(PATH, json=spec).raise_for_status()

    @property
    def is_over(self) -> bool:
        """True once all decisions are made."""
        return len(self.kinds) >= self._course.rounds

    @property
    def is_out(self) -> bool:
        """True while the feed is down."""
        return self._course.out <= self._clock.elapsed / DAY < self._course.back

    def play(self, rounds: int) -> None:
        """Serve visitors, and report what is due unless the feed is down."""
        actions = [{"id": offer, "features": {"offer": offer}} for offer in OFFERS]
        for _ in range(rounds):
            self._clock.advance(int(self._step * self._rng.uniform(0.5, 1.5)))
            now, context = self._clock.elapsed, draw_visitor(self._rng)
            if not self.is_out:
                self._report()
            answer = self._server.http.post(f"{PATH}/decisions", json={"context": context, "actions": actions}).json()
            self.kinds.append(str(context["visitor"]))
            if self._rng.random() < self._course.factor * RATES[self.kinds[-1]][answer["index"]]:
                mean = (4 + 8 * now / (self._course.days * DAY)) * HOUR
                self._waiting.append((now + int(self._rng.exponential(mean)), answer["decision_id"]))

    def held_back(self) -> int:
        """Return the number of purchases that the feed has and has not reported."""
        return sum(moment <= self._clock.elapsed for moment, _ in self._waiting)

    def _report(self) -> None:
        due = [decision for moment, decision in self._waiting if moment <= self._clock.elapsed]
        self._waiting = [item for item in self._waiting if item[0] > self._clock.elapsed]
        if due:
            reports = [{"decision_id": decision, "value": 0.5} for decision in due]
            self._server.http.post(f"{PATH}/conversions", json=reports).raise_for_status()
            self.reported += [self._clock.elapsed] * len(due)

    def find_alarm(self) -> dict[str, Any] | None:
        """Return the alarm that conversions have stopped, where it rings."""
        alarms: list[dict[str, Any]] = self._server.http.get(f"{PATH}/stats").json()["alarms"]
        return next((alarm for alarm in alarms if alarm["id"] == "conversions_stopped"), None)
