"""Reports of a store on this machine: counts under its lock, rows of the log without it."""

import time
from collections.abc import Callable
from datetime import datetime

from msgspec import structs

from latecomer.service.bandit.bandit_view import take_view
from latecomer.service.bandit.decision_explanation import explain_choice, find_choice, find_decision
from latecomer.service.bandit.measures import BanditMeasures, measure_bandit
from latecomer.service.bandit.range_count import count_range
from latecomer.service.bandit.recent_decisions import add_recent
from latecomer.service.bandit.registry import Registry
from latecomer.service.bandit.report import make_report, make_stats
from latecomer.service.bandit_report import BanditReport
from latecomer.service.decision_report import DecisionExplanation
from latecomer.service.log_interface import Log
from latecomer.service.messages import BanditStats, CatalogueInfo, DecisionAnswer, Health, decision_id_of
from latecomer.service.storage.clock import StoreClock
from latecomer.timestamps import parse_timestamp


class StoreReports:
    """Makes reports; any thread may call it.

    Parameters
    ----------
    log, registry, clock
        Those of the store.
    read_health
        Returns the state of the store.
    """

    def __init__(self, log: Log, registry: Registry, clock: StoreClock, read_health: Callable[[], Health]) -> None:
        self._log, self._registry, self._clock, self._read_health = log, registry, clock, read_health

    def stats(self, name: str) -> BanditStats:
        """Return what a bandit has counted and learned."""
        with self._log.lock:
            bandit = self._registry.get(name)
            return make_stats(bandit, now=self._clock.now(), shift=self._clock.shift, health=self._read_health())

    def catalogue(self, name: str) -> CatalogueInfo:
        """Describe a bandit's catalogue."""
        with self._log.lock:
            found = self._registry.get(name).catalogue
            return CatalogueInfo(version=found.version, size=len(found))

    def measure_all(self) -> list[BanditMeasures]:
        """Measure every bandit."""
        with self._log.lock:
            return [measure_bandit(bandit, now=self._clock.now()) for bandit in self._registry.bandits.values()]

    def bandit_report(self, name: str, since: datetime | None = None, until: datetime | None = None) -> BanditReport:
        """Report on a bandit: counts over time, rates, lift, choices, exploration, weights and health.

        With `since` or `until`, it is about the decisions of that time alone, as far as the log still has them.
        """
        log, shift, begin = self._log, self._clock.shift, time.thread_time()
        only = None
        if since is not None or until is not None:
            with log.lock:
                view = take_view(self._registry.get(name), shift=shift)
            only = count_range(view, log.read_rows_from, since=to_stamp(since, shift), until=to_stamp(until, shift))
        with log.lock:
            bandit = self._registry.get(name)
            now = self._clock.now()
            report = make_report(bandit, now=now, shift=shift, health=self._read_health(), only=only)
            view = take_view(bandit, shift=shift)
        report = add_recent(report, view, log.read_rows_from)
        return structs.replace(report, processor_seconds=time.thread_time() - begin)

    def explain(self, name: str, decision: DecisionAnswer | str) -> DecisionExplanation:
        """Explain a decision: the actions it was made among, the features that made it, and its fate."""
        decision_id = decision_id_of(decision)
        with self._log.lock:
            bandit = self._registry.get(name)
            round_, view = find_decision(bandit, decision_id), take_view(bandit, shift=self._clock.shift)
        choice = find_choice(view, self._log.read_rows_from, decision_id, round_)
        with self._log.lock:
            return explain_choice(self._registry.get(name), view, choice)


def to_stamp(moment: datetime | None, shift: int = 0) -> int | None:
    """Return a moment in the store's microseconds."""
    return None if moment is None else parse_timestamp(moment, name="from or to") + shift
