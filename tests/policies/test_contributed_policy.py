"""The policy that CONTRIBUTING.md shows, in a file of its own outside the package, goes wherever a policy goes."""

import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import policy_cases
import pytest
import test_contract

import latecomer as lc
from latecomer.policies import registry
from latecomer.policies.base.algorithm import Algorithm, zero_width
from latecomer.policies.base.bulk import latest_summary, record
from latecomer.policies.persistence.snapshot import PolicySnapshot
from latecomer.service.http import openapi_rules
from latecomer.service.http.settings import Settings

NAME = "EpsilonGreedy"
SETS = test_contract.SETS


def import_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def source() -> str:
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return str(block)


@pytest.fixture(scope="module")
def module(source: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("outside") / "epsilon_greedy.py"
    path.write_text(source, encoding="utf-8")
    registered = dict(registry._registered)
    policy_cases.EVERY_POLICY[NAME] = {"policy": NAME, "seed": 7}
    yield import_file(path)
    del policy_cases.EVERY_POLICY[NAME], sys.modules["epsilon_greedy"]
    registry._registered.clear()
    registry._registered.update(registered)


CONTRACT = {
    name: check
    for name, check in vars(test_contract).items()
    if name.startswith("test_") and {"name"} <= set(inspect.signature(check).parameters) <= {"name", "window"}
}


@pytest.mark.parametrize("check", CONTRACT)
def test_contributed_policy_keeps_the_contract_of_every_policy(module: Any, check: str) -> None:
    windows: list[dict[str, int]] = [{}]
    if "window" in inspect.signature(CONTRACT[check]).parameters:
        windows = [{"window": window} for window in (0, 1, 5)]
    for window in windows:
        CONTRACT[check](name=NAME, **window)


def test_simulate_plays_a_contributed_policy(module: Any) -> None:
    world = lc.World(theta=np.full(2, 0.4), actions=lc.actions.Binary(4), delays=lc.delays.Geometric(mean=5))
    policies = {
        "greedy": lc.Greedy(2, 20),
        "ε = 0": module.EpsilonGreedy(2, 20, epsilon=0.0),
        "ε": module.EpsilonGreedy(2, 20),
    }
    result = lc.simulate(world, policies, horizon=300, runs=2, seed=0)
    np.testing.assert_array_equal(result.regret("ε = 0"), result.regret("greedy"))
    assert not np.array_equal(result.regret("ε"), result.regret("greedy"))


def test_a_saved_contributed_policy_continues_bit_for_bit_with_its_field(module: Any, tmp_path: Path) -> None:
    policy = module.EpsilonGreedy(2, 9, epsilon=0.5, seed=1)
    for actions in SETS[:50]:
        policy.convert(policy.decide(actions))
    policy.save(tmp_path / "policy")
    loaded = lc.load(tmp_path / "policy")
    assert 10 < loaded.state.number("explored") == policy.state.number("explored") < 40
    for actions in SETS[50:60]:
        mine, theirs = policy.decide(actions), loaded.decide(actions)
        assert (mine.index, mine.score) == (theirs.index, theirs.score)


def test_a_replayed_contributed_policy_counts_as_the_live_one_did(module: Any) -> None:
    live, replayed = (module.EpsilonGreedy(2, 9, epsilon=0.5, seed=1) for _ in range(2))
    for actions in SETS[:50]:
        decision = live.decide(actions)
        record(replayed, decision.action[None], latest_summary(live, actions)[None], np.zeros(1, np.int64))
    assert replayed.state.number("explored") == live.state.number("explored") > 0


def test_the_service_serves_and_recovers_a_contributed_policy(module: Any, tmp_path: Path) -> None:
    with lc.open(tmp_path / "shop.db", dim=2, window=50, policy=NAME, parameters={"epsilon": 0.5}) as bandit:
        answers = [bandit.decide(actions) for actions in SETS[:30]]
        assert bandit.convert(answers[0].decision_id) is lc.Verdict.ACCEPTED
        before = bandit.stats()
    with lc.open(tmp_path / "shop.db", dim=2, window=50, policy=NAME, parameters={"epsilon": 0.5}) as bandit:
        assert bandit.stats() == before
        assert bandit.decide(SETS[30]).round == 31


def test_the_schema_of_the_service_has_a_contributed_policy_and_its_parameter(module: Any) -> None:
    spec: dict[str, Any] = {"properties": {"dim": {}, "window": {}, "policy": {}, "parameters": {}}}
    openapi_rules._constrain_spec(spec, Settings().max_dim)
    assert NAME in spec["properties"]["policy"]["enum"]
    assert "epsilon" in spec["properties"]["parameters"]["properties"]


def test_an_unregistered_policy_is_not_saved(module: Any, tmp_path: Path) -> None:
    class Unregistered(module.EpsilonGreedy):  # type: ignore[misc]
        pass

    with pytest.raises(lc.errors.InputError, match=r"got Unregistered: register it"):
        Unregistered(2, 9).save(tmp_path / "policy")


def test_an_edited_file_is_compiled_anew(module: Any, source: str, tmp_path: Path) -> None:
    """Numba's cache would give an algorithm of the same name and fields the code of the old file."""
    path = tmp_path / "edited_epsilon_greedy.py"
    path.write_text(source.replace("return argmax_first(scores)", "return 0"), encoding="utf-8")
    before = registry.policy_class(NAME)
    edited = import_file(path).EpsilonGreedy(2, 9, epsilon=0.0)
    registry.register(before)
    assert edited.algorithm.key != module.EpsilonGreedy.algorithm.key
    for policy, index in ((module.EpsilonGreedy(2, 9, epsilon=0.0), 1), (edited, 0)):
        policy.convert(policy.decide([[0.0, 1.0]]))
        assert policy.decide([[1.0, 0.0], [0.0, 1.0]]).index == index


def test_arrival_times_are_kept_where_an_algorithm_says_that_it_needs_them(module: Any) -> None:
    timed = Algorithm(
        "timed", choose=module.choose, width=zero_width, draw=module.Draw.UNIFORM, needs_arrival_times=True
    )
    for algorithm, kept in ((timed, True), (None, False)):
        policy = type(NAME, (module.EpsilonGreedy,), {"algorithm": algorithm or module.EpsilonGreedy.algorithm})(
            2, timedelta(hours=1)
        )
        assert ("open/arrival" in PolicySnapshot.capture(policy).arrays) is kept
