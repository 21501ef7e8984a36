"""A mixed load on replicas: decisions, conversions and revocations, with duplicates, and retries on other replicas.

Every request that is sent is recorded. A request that fails is sent again, to any replica, until it is acknowledged:
so, at the end, nothing is in doubt.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import numpy as np
from history import CONVERSION, REVOCATION, ClientHistory, History

import latecomer as lc
from latecomer.errors import ServiceError, StoreError
from latecomer.service.messages import Conversion, DecisionAnswer

T = TypeVar("T")
DIM, ARMS = 5, 4
BANDIT = "offers"
RETRY_LIMIT, RETRY_PAUSE, REQUEST_TIMEOUT = 90.0, 0.05, 15.0
PACE = 0.1
"""Seconds between two steps of a client, where a load need only be there: it leaves the processor to other tests."""
QUICK = "OTFLinTS"
"""A policy that samples and decides in a quarter of the time of `recommended`; soaks have that one."""
IDS = [f"arm {i}" for i in range(ARMS)]


def action_set(seed: int) -> list[list[float]]:
    """Return the actions of a request, of norm just below 1."""
    rows = np.random.default_rng(seed).random((ARMS, DIM))
    found: list[list[float]] = (rows / np.linalg.norm(rows, axis=1, keepdims=True) * (1 - 1e-9)).tolist()
    return found


SETS = [action_set(seed) for seed in range(64)]


class LoadClient:
    """One client: it sends to any of the addresses, and keeps a history."""

    def __init__(
        self, number: int, clients: dict[str, lc.Client], history: ClientHistory, *, bandit: str, retries: int = 0
    ) -> None:
        self._number, self._clients, self._history, self._bandit = number, clients, history, bandit
        self._retries = retries
        self._chance = random.Random(number)  # noqa: S311 - not for secrets
        self._requests = 0
        self._answers: list[DecisionAnswer] = []
        self.sent = 0

    def decide(self) -> DecisionAnswer:
        """Have one more decision, and sometimes ask for it again on any replica."""
        self._requests += 1
        request_id, actions = f"{self._number}-{self._requests}", self._chance.choice(SETS)
        answer = self._insist(lambda replica: self._decide_at(replica, request_id, actions))
        if self._chance.random() < 0.1:
            again = self._insist(lambda replica: self._decide_at(replica, request_id, actions))
            assert again == answer, f"{request_id} has two answers: {answer} and {again}"
        self._answers.append(answer)
        return answer

    def _decide_at(self, replica: str, request_id: str, actions: Sequence[Sequence[float]]) -> DecisionAnswer:
        sent_at = time.monotonic()
        self.sent += 1
        try:
            answer = self._clients[replica].decide(self._bandit, actions, ids=IDS, request_id=request_id)
        except (ServiceError, StoreError) as error:
            self._history.decided(replica, request_id, sent_at, error=repr(error))
            raise
        self._history.decided(replica, request_id, sent_at, answer=answer)
        return answer

    def convert(self, count: int) -> None:
        """Report conversions of this client's decisions, the same one more than once too, in one request."""
        if not self._answers:
            return
        chosen = [answer.decision_id for answer in self._chance.choices(self._answers, k=count)]
        value = self._chance.random()
        self._insist(lambda replica: self._convert_at(replica, chosen, value))

    def _convert_at(self, replica: str, chosen: list[str], value: float) -> None:
        reports = [Conversion(decision_id, value) for decision_id in chosen]
        self._report(
            replica, CONVERSION, chosen, lambda: list(self._clients[replica].convert_many(self._bandit, reports))
        )

    def revoke(self) -> None:
        """Take a conversion back, where there is one."""
        if self._answers:
            chosen = self._chance.choice(self._answers).decision_id
            self._insist(lambda replica: self._revoke_at(replica, chosen))

    def _revoke_at(self, replica: str, chosen: str) -> None:
        self._report(replica, REVOCATION, [chosen], lambda: [self._clients[replica].revoke(self._bandit, chosen)])

    def _report(self, replica: str, kind: str, chosen: list[str], send: Callable[[], list[lc.Verdict]]) -> None:
        sent_at = time.monotonic()
        self.sent += len(chosen)
        try:
            verdicts = [verdict.value for verdict in send()]
        except (ServiceError, StoreError) as error:
            self._history.reported(replica, kind, chosen, sent_at, error=repr(error), sends=self._retries + 1)
            raise
        self._history.reported(replica, kind, chosen, sent_at, verdicts=verdicts, sends=self._retries + 1)

    def _insist(self, send: Callable[[str], T]) -> T:
        """Send to replica after replica, until one acknowledges; once, where the client retries by itself."""
        end = time.monotonic() + RETRY_LIMIT
        while True:
            try:
                return send(self._chance.choice(list(self._clients)))
            except (ServiceError, StoreError):
                if self._retries or time.monotonic() > end:
                    raise
                time.sleep(RETRY_PAUSE * self._chance.uniform(0.5, 1.5))

    def step(self, *, batch: int = 1) -> None:
        """Do one thing: mostly a decision, then a few conversions, seldom a revocation."""
        kind = self._chance.random()
        if kind < 0.55:
            self.decide()
        elif kind < 0.95:
            self.convert(self._chance.randint(1, batch))
        else:
            self.revoke()


class Load:
    """Clients that go on in threads of their own until they are stopped, or have sent enough.

    With `retries` it is the client of the library that tries again, and an error that reaches its caller ends the load.
    """

    def __init__(
        self,
        addresses: dict[str, str],
        *,
        clients: int = 8,
        bandit: str = BANDIT,
        batch: int = 3,
        retries: int = 0,
        pace: float = 0.0,
    ) -> None:
        self.history = History()
        self._stack = ExitStack()
        self._http = {
            name: self._stack.enter_context(lc.Client(url, retries=retries, timeout=REQUEST_TIMEOUT))
            for name, url in addresses.items()
        }
        self._bandit, self._retries = bandit, retries
        self._added = 0
        self.clients = [self.add_client(*addresses) for _ in range(clients)]
        self._batch, self._pace = batch, pace
        self._over = threading.Event()
        self._raised: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def add_client(self, *names: str) -> LoadClient:
        """Return one more client, of these replicas alone, for the test itself; its history counts too."""
        self._added += 1
        chosen = {name: self._http[name] for name in names}
        return LoadClient(self._added, chosen, self.history.add_client(), bandit=self._bandit, retries=self._retries)

    def start(self, *, events: int | None = None) -> None:
        """Begin; each client ends by itself when it has sent its share of the events."""
        share = None if events is None else events // len(self.clients)
        self._threads = [threading.Thread(target=self._run, args=(client, share)) for client in self.clients]
        for thread in self._threads:
            thread.start()

    def _run(self, client: LoadClient, share: int | None) -> None:
        try:
            while not self._over.is_set() and (share is None or client.sent < share):
                client.step(batch=self._batch)
                self._over.wait(self._pace)
        except BaseException as error:  # noqa: BLE001
            self._raised.append(error)
            self._over.set()

    @property
    def acknowledged(self) -> int:
        """Decisions and reports that were acknowledged so far."""
        return self.history.acknowledged

    @property
    def is_running(self) -> bool:
        """True as long as no client has failed."""
        return not self._raised

    def wait_for_more(self, count: int, seconds: float = 30.0) -> None:
        """Wait until so many more decisions and reports are acknowledged."""
        enough = self.acknowledged + count
        end = time.monotonic() + seconds
        while self.acknowledged < enough and self.is_running:
            assert time.monotonic() < end, f"fewer than {count} requests were acknowledged within {seconds} s"
            time.sleep(RETRY_PAUSE / 5)

    def join(self, seconds: float) -> None:
        """Wait until every client has sent its share; raise what one of them raised."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        late = [thread for thread in self._threads if thread.is_alive()]
        self.stop()
        assert not late, f"{len(late)} clients did not finish within {seconds} s"

    def stop(self) -> None:
        """Let every client finish what it does; raise what one of them raised."""
        self._over.set()
        for thread in self._threads:
            thread.join(RETRY_LIMIT + REQUEST_TIMEOUT)
        self._stack.close()
        if self._raised:
            raise self._raised[0]


@contextmanager
def run_load(
    addresses: dict[str, str], *, clients: int = 8, bandit: str = BANDIT, retries: int = 0, pace: float = 0.0
) -> Iterator[Load]:
    """Run a load for the length of a block."""
    load = Load(addresses, clients=clients, bandit=bandit, retries=retries, pace=pace)
    load.start()
    try:
        yield load
    finally:
        load.stop()


def create_bandit(url: str, *, bandit: str = BANDIT, window: int | str = 10**9, policy: str = "recommended") -> None:
    """Create the bandit of the load."""
    with lc.Client(url) as client:
        client.create(bandit, dim=DIM, window=window, policy=policy, parameters={"seed": 7})
