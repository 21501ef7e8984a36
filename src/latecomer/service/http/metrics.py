"""Metrics for Prometheus: latencies as they happen; the rest is read from the store when Prometheus asks."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from latecomer.service.http.bandit_metrics import collect_bandits
from latecomer.service.http.logging_setup import count_lost_lines
from latecomer.service.store_alarms import list_store_alarms

if TYPE_CHECKING:
    from latecomer.service.replicated_store import ReplicatedStore
    from latecomer.service.store import Store

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"})
_EVENTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


class Metrics:
    """The metrics of one server."""

    def __init__(self, store: "Store | ReplicatedStore") -> None:
        self._registry = CollectorRegistry()
        self.in_flight = 0
        """Requests that are being handled."""
        self.waiting = 0
        """Requests in flight that wait for a commit."""
        self._seconds = Histogram(
            "latecomer_request_seconds",
            "Time from a request's headers to its answer.",
            ["method", "route", "status"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._errors = Counter(
            "latecomer_refused_requests", "Answers that were errors.", ["code"], registry=self._registry
        )
        Gauge("latecomer_requests_in_flight", "Requests being answered.", registry=self._registry).set_function(
            lambda: self.in_flight
        )
        self._commit_seconds = Histogram(
            "latecomer_commit_seconds",
            "Time to make a group of events durable.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._commit_events = Histogram(
            "latecomer_commit_events", "Events in a commit.", buckets=_EVENTS, registry=self._registry
        )
        self._commit_bytes = Counter("latecomer_commit_bytes", "Bytes committed.", registry=self._registry)
        self._routes: dict[tuple[str, str, int], Histogram] = {}
        self._registry.register(_StoreCollector(store))

    def observe_commit(self, events: int, size: int, seconds: float) -> None:
        """Count a commit; called by the writer's thread."""
        self._commit_seconds.observe(seconds)
        self._commit_events.observe(events)
        self._commit_bytes.inc(size)

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer. Unknown methods and routes share one label: a client could make up any number of them."""
        found = self._routes.get((method, route, status))
        if found is None:
            if route and method in _METHODS:
                shown = "GET" if method == "HEAD" else method
                found = self._routes[method, route, status] = self._seconds.labels(shown, route, status)
            else:
                found = self._seconds.labels("other", "other", status)
        found.observe(seconds)

    def read_latency(
        self, method: str, route: str, status: int, shares: tuple[float, float]
    ) -> tuple[int, float | None, float | None]:
        """Return how many answers there were, and two quantiles of their time: the edges of buckets, in seconds."""
        found = self._routes.get((method, route, status))
        if found is None:
            return 0, None, None
        samples = [sample for family in found.collect() for sample in family.samples if sample.name.endswith("_bucket")]
        edges = [(float(sample.labels["le"]), sample.value) for sample in samples]
        total = edges[-1][1]
        low, high = (next((edge for edge, seen in edges if seen >= share * total), None) for share in shares)
        return int(total), low, high

    def count_error(self, code: str) -> None:
        """Count an answer that is an error."""
        self._errors.labels(code).inc()

    def page(self) -> bytes:
        """Return the page of /metrics."""
        return generate_latest(self._registry)


class _StoreCollector(Collector):
    """Reads the store's own counts whenever the page is written."""

    def __init__(self, store: "Store | ReplicatedStore") -> None:
        self._store = store

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the names are known only once there are bandits."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield every metric of the store."""
        health = self._store.health
        yield GaugeMetricFamily("latecomer_store_failing", "1 while commits fail.", float(health.failure is not None))
        yield GaugeMetricFamily(
            "latecomer_snapshots_failing",
            "1 where the latest snapshot, compaction or pruning failed.",
            float(health.snapshot_failure is not None),
        )
        yield GaugeMetricFamily(
            "latecomer_clock_ahead_seconds", "The store's time minus the machine's.", health.clock_offset
        )
        if health.free_bytes is not None:
            yield GaugeMetricFamily("latecomer_disk_free_bytes", "Room left on the store's disk.", health.free_bytes)
        quarantined = GaugeMetricFamily(
            "latecomer_bandit_quarantined", "1 where rows of a bandit are damaged: it is not served.", labels=["bandit"]
        )
        for info in self._store.list_bandits():
            quarantined.add_metric([info.name], float(info.quarantined))
        yield quarantined
        yield CounterMetricFamily(
            "latecomer_log_lines_lost", "Log lines that could not be written.", count_lost_lines()
        )
        yield from collect_bandits(self._store.measure_all(), list_store_alarms(health))
