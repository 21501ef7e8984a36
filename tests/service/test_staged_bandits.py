"""Bandits whose policy learns from stages: held to the slow oracle after restarts, snapshots and replays."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import SECOND, FakeClocks, state_of
from servers import error_of, run_server
from stage_oracle import StageOracle

import latecomer as lc
from latecomer.errors import InputError
from latecomer.service.bandit_spec import BanditSpec, ChallengerSpec
from latecomer.service.messages import Conversion, Revocation, StageReport
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
STAGES = {"width": "buffered", "stages": ["click", "cart"], "stage_prior": 0.5}
STAGES_ALONE = {"stages": ["click"], "stage_prior": 0.5}
SPEC = BanditSpec(dim=2, window="20s", grace="5s", policy="OTFLinUCB", parameters=STAGES)


class Shop:
    """Random events of a store's bandit, and the oracle beside it; `journal` has the events."""

    def __init__(self, path: Path, spec: BanditSpec = SPEC, *, grace: int = 5) -> None:
        self.path, self.clocks, self.rng = path, FakeClocks(), np.random.default_rng(4)
        self.store = self.open()
        self.store.create("shop", spec)
        self.oracle = StageOracle(2, 20 * SECOND, grace=grace * SECOND, prior=0.5)
        self.journal: list[tuple[Any, ...]] = []
        self.ids: list[str] = []
        self.credited = 0

    def open(self) -> Store:
        return Store.open(self.path, clock=self.clocks, snapshot_every=4, retention="forever")

    def restart(self) -> None:
        self.store.close()
        self.store = self.open()

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.clocks.advance(SECOND * int(self.rng.choice([0, 1, 3])))
            answer, ticket = self.store.decide("shop", ROWS)
            self.store.wait(ticket)
            self.ids.append(answer.decision_id)
            self.note("decide", ROWS[answer.index])
            for _ in range(4):
                self.report()

    def report(self) -> None:
        rounds, oracle = self.oracle.rounds, self.oracle
        kind = str(self.rng.choice(["click", "cart", "convert", "revoke"], p=[0.25, 0.45, 0.25, 0.05]))
        round_ = max(1, rounds - int(self.rng.integers(0, 20)))
        carts = [s for s, stage, _ in oracle.reached if stage == "cart" and rounds - s < 20 and s not in oracle.credits]
        if kind == "convert" and carts and self.rng.random() < 0.8:
            round_ = int(self.rng.choice(carts))
        self.apply(kind, round_)

    def apply(self, kind: str, round_: int) -> None:
        id_, before = self.ids[round_ - 1], len(self.oracle.active)
        if kind == "convert":
            verdicts, ticket = self.store.convert("shop", [Conversion(id_)])
        elif kind == "revoke":
            verdicts, ticket = self.store.revoke("shop", [Revocation(id_)])
        else:
            verdicts, ticket = self.store.report_stages("shop", [StageReport(id_, kind)])
        self.store.wait(ticket)
        assert verdicts == [self.note(kind, round_)]
        self.credited += len(self.oracle.active) > before

    def note(self, kind: str, what: Any) -> Any:
        self.journal.append((kind, what, self.clocks.wall()))
        return follow(self.oracle, *self.journal[-1])

    def check(self) -> None:
        policy = self.store.read_bandit("shop").policy
        np.testing.assert_allclose(policy.B, self.oracle.B, atol=1e-9)
        assert policy.pending == self.oracle.pending
        counted = self.store.stats("shop").stages
        for stage, found in counted.items():
            assert found.surrogate == pytest.approx(self.oracle.surrogate(stage))
            assert found.decisions == sum(name == stage for _, name, _ in self.oracle.reached)


def follow(oracle: StageOracle, kind: str, what: Any, stamp: int) -> Any:
    """Apply an event of a journal to an oracle."""
    if kind == "convert":
        return oracle.convert(what, 1.0, stamp)
    if kind in ("decide", "revoke"):
        return getattr(oracle, kind)(what, stamp)
    return oracle.reach(what, kind, stamp)


def test_stages_teach_through_restarts_snapshots_and_replays(path: Path, tmp_path: Path) -> None:
    kept, other = Shop(path), Shop(tmp_path / "other.db")
    for _ in range(8):
        kept.play(5)
        kept.restart()
        kept.check()
        other.play(5)
    assert kept.credited > 5
    ours, theirs = (state_of(shop.store, "shop") for shop in (kept, other))
    assert ours == theirs  # never restarted, to the last bit
    tables = [shop.store.read_bandit("shop").policy.table_arrays() for shop in (kept, other)]
    for name in tables[0]:
        np.testing.assert_array_equal(tables[0][name], tables[1][name], err_msg=name)
    other.store.close()
    replay(kept.store, "shop", "again")
    shop, again = (kept.store.read_bandit(name).policy for name in ("shop", "again"))
    assert again.B.tobytes() == shop.B.tobytes()
    assert again.stage_rates == shop.stage_rates
    replay(kept.store, "shop", "shorter", window="6s", grace="0s")
    oracle = StageOracle(2, 6 * SECOND, prior=0.5)
    for event in kept.journal:
        follow(oracle, *event)
    shorter = kept.store.read_bandit("shorter").policy
    np.testing.assert_allclose(shorter.B, oracle.B, atol=1e-9)
    assert shorter.stage_rates["cart"].surrogate == pytest.approx(oracle.surrogate("cart"))
    replay(kept.store, "shop", "plain", parameters={"width": "buffered"})
    plain = kept.store.read_bandit("plain").policy
    assert plain.stages == ()
    credits = oracle_of(kept.journal, grace=5).credits
    expected = sum(value * kept.oracle.actions[s - 1] for s, value in credits.items())
    np.testing.assert_allclose(plain.B, expected, atol=1e-9)
    replay(kept.store, "plain", "taught", parameters=STAGES)  # a log from before the stages were declared
    np.testing.assert_allclose(kept.store.read_bandit("taught").policy.B, kept.oracle.B, atol=1e-9)
    kept.store.close()
    assert list(verify(path))[-1].startswith("taught: rows")


def oracle_of(journal: list[tuple[Any, ...]], *, grace: int) -> StageOracle:
    oracle = StageOracle(2, 20 * SECOND, grace=grace * SECOND, prior=0.5)
    for event in journal:
        follow(oracle, *event)
    return oracle


def test_a_challenger_learns_from_stages_where_the_champion_does_not(path: Path) -> None:
    challenger = ChallengerSpec(policy="OTFLinUCB", parameters=STAGES, share=0.5)
    plain = {"width": "buffered"}
    spec = BanditSpec(dim=2, window="20s", grace="5s", policy="OTFLinUCB", parameters=plain, challenger=challenger)
    shop = Shop(path, spec)
    for _ in range(6):
        shop.play(5)
        shop.restart()
        champion, taught = shop.store.read_bandit("shop").policies
        np.testing.assert_allclose(taught.B, shop.oracle.B, atol=1e-9)
        expected = sum((shop.oracle.credits[s] * shop.oracle.actions[s - 1] for s in shop.oracle.credits), np.zeros(2))
        np.testing.assert_allclose(champion.B, expected, atol=1e-9)
    assert shop.credited > 3
    shop.store.close()


def test_a_stage_that_occurred_after_the_window_is_no_surrogate(path: Path) -> None:
    shop = Shop(path)
    shop.play(60)
    first, second = (shop.store.decide("shop", ROWS)[0].decision_id for _ in range(2))
    decided = EPOCH + timedelta(microseconds=shop.clocks.wall())
    shop.clocks.advance(22 * SECOND)  # in the grace, and no decision has closed the rounds
    policy = shop.store.read_bandit("shop").policy
    surrogate, before = policy.stage_rates["cart"].surrogate, policy.B.copy()
    assert surrogate > 0.0
    report = StageReport(first, "cart", decided + timedelta(seconds=21))
    assert shop.store.report_stages("shop", [report])[0] == ["accepted"]
    np.testing.assert_array_equal(policy.B, before)
    report = StageReport(second, "cart", decided + timedelta(seconds=19))
    assert shop.store.report_stages("shop", [report])[0] == ["accepted"]
    assert np.linalg.norm(policy.B - before) == pytest.approx(surrogate, rel=0.1)
    shop.store.close()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"stages": "click"}, "parameters: stages must be a list of names"),
        ({"stages": ["a b"]}, "parameters: stages must be names of 1 to 32"),
        ({"stages": ["a", "a"]}, "parameters: stages must be different"),
        ({"stages": [f"s{i}" for i in range(17)]}, "parameters: stages must be at most 16"),
        ({"stages": {"click": 1}}, "parameters: stages must be a list of names"),
        ({"stages": ["a"], "stage_prior": -1}, "parameters: stage_prior must"),
        ({"stages": True}, "parameters: stages must be"),
    ],
)
def test_wrong_stages_are_refused_over_http(server_of_all: Any, parameters: dict[str, Any], message: str) -> None:
    body = {"dim": 2, "window": "1d", "parameters": parameters}
    answer = server_of_all.http.put("/v1/bandits/wrong", json=body)
    assert (answer.status_code, error_of(answer)["field"]) == (400, "parameters")
    assert error_of(answer)["message"].startswith(message)
    assert server_of_all.http.get("/v1/bandits/wrong").status_code == 404


@pytest.fixture(scope="module")
def server_of_all(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with run_server(tmp_path_factory.mktemp("staged") / "a.db") as server:
        yield server


def test_clients_teach_by_stages(server_of_all: Any) -> None:
    with server_of_all.client() as client:
        client.create("x", dim=2, window="1d", policy="Greedy", parameters=STAGES_ALONE)
        teach(lambda: client.decide("x", ROWS), client_report(client, "x"))
        found = client.stats("x").stages["click"]
        assert (found.decisions, found.conversions) == (12, 10)
        assert found.surrogate is not None
        assert found.surrogate > 0.3
        assert client.stage("x", client.decide("x", ROWS), "view") == "accepted"  # kept, and teaches nothing
        assert client.stats("x").stages["view"].surrogate is None
        before = client.stats("x").theta_hat

        async def report() -> None:
            async with lc.AsyncClient(server_of_all.url) as other:
                answer = await other.decide("x", ROWS)
                assert await other.stage("x", answer, "click") == "accepted"

        asyncio.run(report())
        assert client.stats("x").theta_hat != before


def teach(decide: Callable[[], Any], report: Callable[[Any, str | None], object]) -> None:
    """Have ten decisions click and buy, two click, and twelve do nothing."""
    for i in range(24):
        answer = decide()
        if i < 12:
            report(answer, "click")
        if i < 10:
            report(answer, None)


def client_report(client: Any, name: str) -> Callable[[Any, str | None], object]:
    return lambda answer, stage: client.convert(name, answer) if stage is None else client.stage(name, answer, stage)


def test_an_open_bandit_is_taught_by_stages(path: Path) -> None:
    with lc.open(path, dim=2, window=100, policy="Greedy", parameters=STAGES_ALONE) as bandit:
        teach(
            lambda: bandit.decide(ROWS),
            lambda answer, stage: bandit.convert(answer) if stage is None else bandit.stage(answer, stage),
        )
        answer = bandit.decide(ROWS)
        before = bandit.stats().theta_hat
        bandit.stage(answer, "click")
        taught = bandit.stats().theta_hat
        assert taught != before
    with lc.open(path, dim=2, window=100, policy="Greedy", parameters=STAGES_ALONE) as bandit:
        assert bandit.stats().theta_hat == taught
        with pytest.raises(InputError, match="stage of report 0 must be"):
            bandit.stage(answer, "a b")
    with pytest.raises(lc.errors.ConflictError, match=r"parameters.stages is \['click'\], not"):
        lc.open(path, dim=2, window=100, policy="Greedy", parameters={**STAGES_ALONE, "stages": ["cart"]})
