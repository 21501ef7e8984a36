"""Champion and challenger in a store: one log, two policies that learn from all of it, compared in stats."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_clocks import DAY, FakeClocks

import latecomer as lc
from latecomer.errors import ConflictError, InputError
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.decision_call import check_decision_call
from latecomer.service.bandit.decision_run import join_rows
from latecomer.service.bandit.descriptor import make_descriptor, resolve_spec
from latecomer.service.bandit.report import make_report
from latecomer.service.bandit_spec import BanditSpec, ChallengerSpec
from latecomer.service.messages import Activation, Conversion, Revocation
from latecomer.service.store import Store
from latecomer.service.tools.replay import replay
from latecomer.service.tools.verify import verify

ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
CHALLENGER = ChallengerSpec(policy="LinUCB", share=0.4)
Spec = dict[str, Any]


def make_spec(**more: Any) -> BanditSpec:
    given: Spec = {"dim": 2, "window": "7d", "grace": "0s", "parameters": {"seed": 1}, "challenger": CHALLENGER}
    return BanditSpec(**{**given, **more})


def play(store: Store, rounds: int, clocks: FakeClocks, *, seed: int = 0) -> list[tuple[bool, float, float]]:
    """Decide and convert by every kind of event; return of each plain decision who made it, propensity and value."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(rounds):
        clocks.advance(DAY // 5)
        answer, ticket = store.decide("shop", ROWS, subject="anna" if rng.random() < 0.3 else None)
        value = float(rng.random() < (0.2, 0.6, 0.4)[answer.index])
        assert answer.propensity is not None
        made.append((answer.is_control, answer.propensity, value))
        if value:
            ticket = store.convert("shop", [Conversion(answer.decision_id)])[1]
        store.wait(ticket)
    return made


def read_states(bandit: Bandit) -> list[bytes]:
    """Return everything that the next decisions of both policies depend on."""
    states = [np.concatenate([policy.V.ravel(), policy.B, policy.theta_hat]) for policy in bandit.policies]
    return [state.tobytes() + repr(p.rng.state()).encode() for state, p in zip(states, bandit.policies, strict=True)]


def test_both_learn_everything_and_stats_compare_them(path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(path, clock=clocks, snapshot_every=40, retention="forever") as store:
        store.create("shop", make_spec())
        made = play(store, 80, clocks)
        first, second = store.read_bandit("shop").policies
        np.testing.assert_allclose(first.V, second.V, atol=1e-9)
        np.testing.assert_allclose(first.B, second.B, atol=1e-9)
        stats, before = store.stats("shop"), read_states(store.read_bandit("shop"))
        found, arms, (edges, shares) = stats.contest, stats.arms, first.delay_curve or ((), ())
        ages = [min(0.2 * (80 - place) * 86_400, 7 * 86_400) for place in range(1, 81)]  # closed after the window
        maturities = np.where(np.arange(80) < 44, 1.0, np.interp(ages, edges, shares))
        report = make_report(store.read_bandit("shop"), now=clocks.wall()).lift
        assert found is not None
        assert report is not None
    closed = made[:-36]  # a decision is open for 35 steps of 0.2 days after its own
    for is_champion, decisions, mean in (
        (False, found.decisions, found.mean),
        (True, found.other_decisions, found.other_mean),
    ):
        values = [value for by, _, value in closed if by is is_champion]
        assert decisions == len(values)
        assert mean == pytest.approx(np.mean(values))
    assert list(arms) == ["challenger", "champion"]
    for rates, is_champion in ((arms["challenger"], False), (arms["champion"], True)):
        mine = [place for place, (by, _, _) in enumerate(made) if by is is_champion]
        count, weight = sum(made[place][2] > 0 for place in mine), sum(maturities[place] for place in mine)
        assert (rates.decisions, rates.conversions) == (len(mine), count)
        assert rates.matured == pytest.approx(count / weight)
        assert rates.naive < rates.matured  # type: ignore[operator]
    assert found.low < found.mean - found.other_mean < found.high  # type: ignore[operator]
    assert (report.arms, report.decisions, report.difference) == (
        ("challenger", "champion"),
        found.decisions,
        found.difference,
    )
    weights = np.array([1.0 / propensity for _, propensity, _ in made])
    assert 1.5 < weights.mean() < 6.0  # of three actions: 3 where each has its share of support
    with Store.open(path, clock=clocks, snapshot_every=40, retention="forever") as store:  # from a snapshot
        assert read_states(store.read_bandit("shop")) == before
        assert store.stats("shop").contest == found
    assert list(verify(path))[-1].startswith("shop: rows 1 to")


def test_propensities_are_those_before_the_arm_is_drawn(path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(path, clock=clocks) as store:
        store.create("shop", make_spec(parameters={"seed": 1, "draws": 8, "floor": 0.1}))
        play(store, 25, clocks)
        bandit, at = store.read_bandit("shop"), clocks.wall() / 1e6
        arms = set()
        for _ in range(25):
            champion, challenger = (policy.probabilities(ROWS, at=at) for policy in bandit.policies)
            answer, _ = store.decide("shop", ROWS)
            arms.add(answer.is_control)
            blended = 0.6 * champion + 0.4 * challenger
            assert answer.propensity == pytest.approx(blended[answer.index], rel=1e-9)
        assert arms == {False, True}
        for _ in range(10):
            ranked: Any = store.decide("shop", ROWS[:2], k=1, examination=[1.0])[0]
            chosen = ranked.ranking[0]
            assert 0.0 < chosen.propensity <= 1.0
            assert ranked.propensity == chosen.propensity  # of one position, first and included are the same
            three: Any = store.decide("shop", ROWS, k=3)[0]
            assert [each.propensity for each in three.ranking] == pytest.approx([1.0] * 3)
        for first in range(3):  # by hand, before the decision: each policy's share of the first place
            own, other = (policy.assess_ranking(ROWS, [first], at=at)[0] for policy in bandit.policies)
            assert own == pytest.approx(bandit.policies[0].probabilities(ROWS, at=at)[first], abs=1e-9)
            assert other == pytest.approx(bandit.policies[1].probabilities(ROWS, at=at)[first], abs=1e-9)


def test_every_event_keeps_both_policies_as_a_restart_has_them(path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(path, clock=clocks, retention="forever") as store:
        store.create("shop", make_spec(grace="1d", returns="30d"))
        play(store, 20, clocks)
        waiting = [store.decide("shop", ROWS, deferred=True, subject="bert")[0] for _ in range(8)]
        store.activate("shop", [Activation(answer.decision_id) for answer in waiting[::2]])
        ranked: Any = store.decide("shop", ROWS, k=2, examination=[1.0, 0.5])[0]
        store.convert("shop", [Conversion(ranked.ranking[1].decision_id)])
        assert store.convert("shop", [Conversion(subject="bert")])[0] == [lc.Verdict.ACCEPTED]
        bought, _ = store.decide("shop", ROWS, request_id="a")
        assert store.decide("shop", ROWS, request_id="a")[0] == bought
        store.convert("shop", [Conversion(bought.decision_id, conversion_id="c")])
        clocks.advance(20 * DAY)
        store.decide("shop", ROWS)
        assert store.revoke("shop", [Revocation(conversion_id="c")])[0] == [lc.Verdict.ACCEPTED]
        store.freeze("shop", True)
        play(store, 5, clocks)
        store.wait(store.freeze("shop", False)[1])
        play(store, 5, clocks)
        before, rounds = read_states(store.read_bandit("shop")), store.stats("shop").rounds
    for snapshot in (False, True):
        with Store.open(path, clock=clocks, retention="forever") as store:
            assert read_states(store.read_bandit("shop")) == before, snapshot
            assert store.stats("shop").rounds == rounds
    assert list(verify(path))[-1].startswith("shop: rows 1 to")


def test_a_replay_keeps_the_contest_and_promotes_the_challenger(path: Path) -> None:
    clocks = FakeClocks()
    with Store.open(path, clock=clocks, retention="forever") as store:
        store.create("shop", make_spec())
        play(store, 45, clocks)
        found = store.stats("shop").contest
        shorter = replay(store, "shop", "shorter", window="3d").contest
        assert found is not None
        assert shorter is not None
        assert shorter.decisions + shorter.other_decisions > found.decisions + found.other_decisions
        promoted = replay(store, "shop", "promoted", promote=True)
        assert promoted.contest is None
        info = store.info("promoted")
        assert (info.policy, info.challenger) == ("LinUCB", None)
        np.testing.assert_array_equal(
            store.read_bandit("promoted").policy.theta_hat, store.read_bandit("shop").policies[1].theta_hat
        )
        with pytest.raises(InputError, match="no challenger to promote"):
            replay(store, "promoted", "again", promote=True)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"challenger": ChallengerSpec(policy="LinUBC")}, r"challenger: policy must be one of .* LinUCB"),
        ({"challenger": ChallengerSpec(policy="LinUCB", parameters={"draws": 0})}, "challenger: parameters: draws"),
        ({"challenger": ChallengerSpec(policy="OTFLinTS")}, "the challenger, OTFLinTS, does not: give it draws"),
        ({"policy": "OTFLinTS"}, "the policy, OTFLinTS, does not: give it draws"),
        ({"parameters": {"control": {"share": 0.1, "policy": 0}}}, "control must be left out of the policy's"),
    ],
)
def test_a_challenger_that_cannot_be_compared_is_refused(path: Path, changes: Spec, rule: str) -> None:
    with Store.open(path) as store:
        with pytest.raises(InputError, match=rule) as refused:
            store.create("shop", make_spec(**changes))
        assert refused.value.field == "challenger"
        assert store.list_bandits() == []


def test_another_challenger_is_another_specification(path: Path) -> None:
    with Store.open(path) as store:
        store.create("shop", make_spec())
        store.create("shop", make_spec())
        with pytest.raises(ConflictError, match="challenger is ChallengerSpec"):
            store.create("shop", make_spec(challenger=None))
    with pytest.raises(InputError, match=r"challenger must be as .*share") as refused:
        lc.open(path.with_name("other.db"), dim=2, window="7d", challenger={"share": 2.0})
    assert refused.value.field == "challenger"


def test_a_batch_is_decided_as_its_requests_by_themselves() -> None:
    spec = make_spec()
    descriptor = make_descriptor(1, "shop", resolve_spec(spec), requested=spec, stamp=0)
    one, many = (Bandit(descriptor, descriptor.make_policy()) for _ in range(2))
    calls = [check_decision_call(2, ROWS) for _ in range(30)]
    singles = [one.decide(call, now=10**15)[0] for call in calls]
    together = [answer for answer, _ in many.decide_run(calls, join_rows(calls), now=10**15)]
    assert [(a.index, a.score, a.propensity, a.is_control) for a in singles] == [
        (a.index, a.score, a.propensity, a.is_control) for a in together
    ]
    assert {answer.is_control for answer in together} == {False, True}
    assert read_states(one) == read_states(many)
