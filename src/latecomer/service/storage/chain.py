"""The state of one bandit's chain in the SQLite log, besides its rows: snapshots, compaction, pruning, requests."""

from typing import NamedTuple

from latecomer.service.bandit import events
from latecomer.service.bandit.events import Payload
from latecomer.service.bandit.request_id_index import RequestIndex
from latecomer.service.storage.pending_commit import Commit


class EventCost(NamedTuple):
    """Seconds of processor time that applying an event takes with so many compiled kernels; 0: unknown."""

    seconds: float
    compiled_kernels: int


class Chain:
    """One bandit's chain. Attributes change with the store's lock held, or in the writer's thread as they say.

    Parameters
    ----------
    number
        The bandit's number.
    requests
        The index of its request ids.
    saved_at
        When the latest snapshot was begun, in the store's time.
    """

    __slots__ = (
        "compacted_up_to",
        "damage",
        "event_cost",
        "is_compacting",
        "is_saving",
        "number",
        "pending_requests",
        "pruned_rounds",
        "requests",
        "saved_at",
        "small_rows",
        "unsaved_events",
    )

    def __init__(self, number: int, requests: RequestIndex, *, saved_at: int = 0) -> None:
        self.number = number
        self.requests = requests
        self.pending_requests: dict[bytes, tuple[bytes, Commit]] = {}
        """Events of decisions whose row is not in the log yet, by the digest of their request."""
        self.unsaved_events = 0
        """Events since the latest snapshot."""
        self.event_cost = EventCost(0.0, 0)
        """The cost of a logged event, where many were applied together."""
        self.saved_at = saved_at
        self.is_saving = False
        """True while a snapshot is being written; the writer's thread clears it."""
        self.small_rows = 0
        """Rows since the last compaction, at most."""
        self.compacted_up_to = 0
        """The number of the last row that compaction has looked at; set by the writer's thread."""
        self.is_compacting = False
        """True while a compaction is queued or under way; the writer's thread clears it."""
        self.pruned_rounds = 0
        """The last round whose row has been pruned; set by the writer's thread."""
        self.damage = ""
        """The damage of rows that compaction has found; set by the writer's thread."""

    def add_request(self, request: bytes, round: int, payload: bytes, commit: Commit) -> None:
        """Add the request of a decision whose events have just been appended; they are found in memory until then."""
        self.requests.add(request, round)
        self.pending_requests[request] = (payload, commit)
        commit.pending_requests.append((self.pending_requests, request))

    def add_requests(self, payload: Payload) -> None:
        """Add the requests of logged decisions to the index."""
        decisions = payload.records(events.DECISION_WITH_REQUEST)
        if len(decisions):
            self.requests.update(decisions["request"].tolist(), decisions["round"].tolist())
