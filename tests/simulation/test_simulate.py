"""The simulator: the policies' own kernels, common random numbers, and one result whatever plays it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from policy_cases import EVERY_POLICY, make
from processes import run_python

import latecomer as lc
from latecomer.errors import InputError
from latecomer.experiments.paper.released_code import ReleasedTS, ReleasedUCB
from latecomer.simulation.run import Episode
from latecomer.simulation.seeding import make_generators, policy_purpose

THETA = np.array([0.5, 0.6, 0.1, 0.3, 0.2])
DIM = len(THETA)
"""That of the paper's worlds: the machine code of one is that of the other."""

WORLD = lc.World(theta=THETA, actions=lc.actions.Uniform(6), delays=lc.delays.Geometric(mean=15))


CHANGING = lc.World(
    theta=[3.0, -2.0, 0.5, 0.0, 1.0],
    actions=lc.actions.Rotating(count=9, visible=4, period=70),
    delays=lc.delays.ChangePoint(lc.delays.Geometric(mean=3), lc.delays.Geometric(mean=25), change=700),
    reward="logistic",
    intercept=-1.0,
)


def templates(window: int) -> dict[str, Any]:
    return {name: make(name, DIM, window) for name in EVERY_POLICY} | {
        "ReleasedUCB": ReleasedUCB(DIM, window),
        "ReleasedTS": ReleasedTS(DIM, window),
    }


def play_step_by_step(world: lc.World, template: Any, name: str, *, horizon: int, seed: int, run: int) -> np.ndarray:
    """Play the run through `decide` and `convert` as plain Python, with the conversions from a plain dictionary."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LATECOMER_COMPILE", "never")
        return _play_step_by_step(world, template, name, horizon=horizon, seed=seed, run=run)


def _play_step_by_step(world: lc.World, template: Any, name: str, *, horizon: int, seed: int, run: int) -> np.ndarray:
    episode = Episode(world, horizon, seed=seed, run=run)
    policy = template.fresh(*make_generators(seed, run, [policy_purpose(name)]))
    due: dict[int, list[int]] = {}
    regret, block = [], None
    for t in range(horizon):
        if t % 1024 == 0:
            block = episode.block(t)
        assert block is not None
        actions = block.sets[t % 1024]
        decision = policy.decide(actions)
        means = actions @ world.theta + world.intercept
        if world.reward == "logistic":
            means = 1 / (1 + np.exp(-means))
        mean = means[decision.index]
        regret.append(max(means) - mean)
        if episode.uniforms[t] < mean:
            due.setdefault(t + int(episode.delays[t]), []).append(decision.round)
        for round in due.pop(t, []):
            policy.convert(round)
    return np.cumsum(regret)


def assert_simulated_as_played(policies: dict[str, Any], world: lc.World, *, horizon: int, runs: int) -> None:
    result = lc.simulate(world, policies, horizon=horizon, runs=runs, seed=5, progress=False)
    for name, template in policies.items():
        expected = play_step_by_step(world, template, name, horizon=horizon, seed=5, run=runs - 1)
        where = f"{name}, window {template.window}, in {world}"
        np.testing.assert_allclose(result.regret(name)[-1], expected, rtol=1e-9, atol=1e-9, err_msg=where)


LONG_STRETCHES = lc.World(theta=THETA, actions=lc.actions.Binary(30), delays=lc.delays.Geometric(mean=15))
CASES = pytest.mark.parametrize(("world", "window"), [(WORLD, 0), (WORLD, 20), (CHANGING, 20)])
DIFFERENT = ("OTFLinUCB-exact", "MaturedLinTS")
"""The loops with least in common: a width that counts; a delay curve, and draws. The soak has each."""


def different(window: int) -> dict[str, Any]:
    return {name: template for name, template in templates(window).items() if name in DIFFERENT}


@CASES
def test_a_simulated_run_is_the_run_step_by_step(world: lc.World, window: int) -> None:
    """Every policy, in rounds too few to compile for."""
    assert_simulated_as_played(templates(window), world, horizon=30, runs=2)


@pytest.mark.parametrize(
    ("world", "name"), [(LONG_STRETCHES, "OTFLinUCB-exact"), (CHANGING, "MaturedLinTS")], ids=["stretches", "changing"]
)
def test_a_run_of_machine_code_is_the_run_step_by_step(world: lc.World, name: str) -> None:
    assert_simulated_as_played({name: different(20)[name]}, world, horizon=1060, runs=2)  # more than a block of rounds


@pytest.mark.soak
@pytest.mark.parametrize(
    ("world", "window"),
    [(WORLD, 0), (WORLD, 20), (CHANGING, 20), (LONG_STRETCHES, 20)],
    ids=["0", "20", "changing", "stretches"],
)
def test_every_run_of_machine_code_is_the_run_step_by_step(world: lc.World, window: int) -> None:
    assert_simulated_as_played(templates(window), world, horizon=1300, runs=2)


@pytest.mark.parametrize(("make_policies", "window", "horizon"), [(templates, 5, 12), (different, 20, 700)])
def test_threads_and_templates_change_nothing(
    make_policies: Callable[[int], dict[str, Any]], window: int, horizon: int
) -> None:
    """Every policy as plain Python, and some as machine code, which threads run at the same time."""
    policies = make_policies(window)
    policies["OTFLinUCB-exact"].decide(np.eye(DIM))  # a template that has lived
    before = policies["OTFLinUCB-exact"].state.record.tobytes()
    one = lc.simulate(WORLD, policies, horizon=horizon, runs=5, seed=2, jobs=1, progress=False)
    four = lc.simulate(WORLD, policies, horizon=horizon, runs=5, seed=2, jobs=4, progress=False)
    for name in policies:
        np.testing.assert_array_equal(one.regret(name), four.regret(name))
    assert policies["OTFLinUCB-exact"].state.record.tobytes() == before


def test_others_do_not_touch_a_policys_numbers() -> None:
    policies = templates(20)
    together = lc.simulate(WORLD, policies, horizon=30, runs=2, seed=2, progress=False)
    alone = lc.simulate(WORLD, {"LinTS": policies["LinTS"]}, horizon=30, runs=2, seed=2, progress=False)
    np.testing.assert_array_equal(together.regret("LinTS"), alone.regret("LinTS"))


def test_a_longer_horizon_has_the_same_beginning() -> None:
    policies = {"ts": lc.MaturedLinTS(DIM, 20)}
    short = lc.simulate(WORLD, policies, horizon=700, runs=2, seed=2, progress=False)
    long = lc.simulate(WORLD, policies, horizon=2500, runs=3, seed=2, progress=False)
    np.testing.assert_array_equal(short.regret("ts"), long.regret("ts")[:2, :700])


LAWS = (
    (lc.actions.Binary(10), 7500),
    (lc.actions.Binary(300), 1500),  # a stretch is less than a block
    (lc.actions.Rotating(count=9, visible=4, period=70), 7500),
    (lc.actions.RandomFixed(5), 7500),
    (lc.actions.UnitVectors(), 7500),
    (lc.actions.Uniform(3), 7500),
)


@pytest.mark.parametrize(("law", "horizon"), LAWS)
def test_stretches_are_the_blocks_of_a_seed(law: Any, horizon: int) -> None:
    """However many rounds are drawn at once, a run meets the sets that its generator gives in blocks of 1,024."""
    world = lc.World(theta=THETA, actions=law, delays=lc.delays.Geometric(mean=15))
    rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(3, 0)))
    blocks = [
        law.sample_from(rng, first, 1024, THETA) if hasattr(law, "sample_from") else law.sample(rng, 1024, THETA)
        for first in range(0, horizon, 1024)
    ]
    drawn = list(Episode(world, horizon, seed=5, run=3).stretches())
    ends = np.cumsum([len(block.offers) for _, block in drawn])
    assert [first for first, _ in drawn] == [0, *ends[:-1]]
    np.testing.assert_array_equal(
        np.concatenate([block.sets for _, block in drawn]), np.concatenate(blocks)[:horizon], strict=True
    )
    assert max(block.offers.size for _, block in drawn) <= max(2**16, 1024 * 5), "memory is bounded"


def test_every_policy_meets_the_same_world() -> None:
    """Two policies that choose alike have the same regret to the last bit, run by run."""
    policies = {"a": lc.Greedy(DIM, 20), "b": lc.LinUCB(DIM, 20, exploration=0.0)}
    result = lc.simulate(WORLD, policies, horizon=150, runs=3, seed=1, progress=False)
    np.testing.assert_array_equal(result.regret("a"), result.regret("b"))


def test_common_draws_make_like_policies_alike() -> None:
    policies = {"a": lc.OTFLinTS(DIM, 20), "b": lc.OTFLinTS(DIM, 20)}
    own = lc.simulate(WORLD, policies, horizon=100, runs=3, seed=1, progress=False)
    common = lc.simulate(WORLD, policies, horizon=100, runs=3, seed=1, progress=False, common_draws=True)
    np.testing.assert_array_equal(common.regret("a"), common.regret("b"))
    assert (own.final("a") != own.final("b")).all()
    assert len(set(common.final("a"))) == 3, "runs have draws of their own"


def test_result_is_the_same_as_arrays_frame_summary_and_file(tmp_path: Path) -> None:
    policies = {"greedy": lc.Greedy(DIM, 20), "uniform": lc.Uniform(DIM, 20)}
    result = lc.simulate(WORLD, policies, horizon=50, runs=4, seed=1, progress=False)
    assert (result.policies, result.runs, result.horizon, result.is_complete) == (["greedy", "uniform"], 4, 50, True)
    frame = result.to_frame()
    assert frame.columns == ["policy", "run", "round", "regret"]
    assert len(frame) == 2 * 4 * 50
    one = frame.filter(pl.col("policy") == "uniform", pl.col("run") == 2)
    np.testing.assert_array_equal(one["regret"].to_numpy(), result.regret("uniform")[2])
    assert one["round"].to_list() == list(range(1, 51))
    summary = result.regret_by_round([50]).filter(pl.col("policy") == "greedy")
    values = result.final("greedy")
    assert summary["mean"].item() == pytest.approx(values.mean())
    assert summary["standard_error"].item() == pytest.approx(values.std(ddof=1) / 2)
    assert summary["low"].item() == pytest.approx(np.quantile(values, 0.05))
    assert summary["high"].item() == pytest.approx(np.quantile(values, 0.95))
    result.write(tmp_path / "r.parquet")
    assert pl.read_parquet(tmp_path / "r.parquet").equals(frame)
    with pytest.raises(InputError, match=r"policy must be one of 'greedy', 'uniform'; got 'x'"):
        result.regret("x")


CODE = """
import sys, latecomer as lc
world = lc.World(theta=[0.5, 0.5], actions=lc.actions.Uniform(4), delays=lc.delays.Geometric(mean=5))
policies = {"ucb": lc.OTFLinUCB(2, 10), "ts": lc.OTFLinTS(2, 10)}
lc.simulate(world, policies, horizon=100, runs=3, seed=9, progress=False).write(sys.argv[1])
"""


def test_a_second_process_writes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["", str(tmp_path / "first")])
    exec(CODE, {})  # noqa: S102
    run_python(CODE, tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


INTERRUPTED = """
import os, time
import latecomer as lc
world = lc.World(theta=[0.5, 0.5], actions=lc.actions.Uniform(4), delays=lc.delays.Geometric(mean=5))
class Slow:
    def sample(self, rng, rounds, theta):
        time.sleep(0.05)
        os.write(1, b"run\\n")  # whole: two threads print
        return lc.actions.Uniform(4).sample(rng, rounds, theta)
world.actions = Slow()
result = lc.simulate(world, {"u": lc.Uniform(2, 10)}, horizon=100, runs=100000, seed=9, progress=False)
print("left", result.runs, result.is_complete, len(result.final("u")))
"""


@pytest.mark.usefixtures("signals_that_arrive")
def test_ctrl_c_leaves_what_is_done() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    environment = {**os.environ, "LATECOMER_COMPILE": "never"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            for _ in range(12):
                assert process.stdout.readline() == "run\n"
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=30)
        finally:
            process.kill()
    last = output.strip().splitlines()[-1].split()
    assert last[0] == "left"
    assert 1 <= int(last[1]) < 100000
    assert last[2:] == ["False", last[1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, r"horizon must be at least 1"),
        ({"runs": 0}, r"runs must be at least 1"),
        ({"seed": -1}, r"seed must be at least 0"),
        ({"jobs": 0}, r"jobs must be at least 1"),
        ({"world": 3}, r"world must be a World; got 3"),
        ({"policies": [lc.Greedy(DIM, 5)]}, r"policies must be a dictionary of policies by name"),
        ({"horizon": 10**15}, r"policies × runs × horizon must fit into memory, \d+ GB; got 8,000,000 GB"),
        ({"policies": {}}, r"policies must hold at least one policy"),
        ({"policies": {"x": 3}}, r"policies\['x'\] must be a Latecomer policy, such as OTFLinUCB\(...\), or .*; got 3"),
        ({"policies": {"x": lc.Greedy(3, 5)}}, r"policies\['x'\] must have the world's dim, 5; got 3"),
        ({"policies": {"x": lc.Greedy(DIM, timedelta(1))}}, r"policies\['x'\] must have its window in rounds"),
    ],
)
def test_simulate_refuses_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"policies": {"g": lc.Greedy(DIM, 5)}, "horizon": 10, "runs": 1, "progress": False}
    with pytest.raises(InputError, match=message):
        lc.simulate(**{"world": WORLD, **good, **arguments})
