"""An experiment file: the world and the policies that it makes."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from experiment_texts import ACTIONS, DELAYS, OURS, POLICY, THETA, parse, text

import latecomer as lc
from latecomer.experiments import experiment_file
from latecomer.experiments.paper.released_code import ReleasedTS, ReleasedUCB

EXAMPLE = Path(__file__).parents[2] / "examples" / "simulate.toml"


def test_least_file_has_the_defaults() -> None:
    made = parse(text())
    assert (made.horizon, made.runs, made.seed) == (50, 100, 0)
    np.testing.assert_allclose(made.world.theta, np.full(5, 5**-0.5))
    assert repr(made.world.actions) == repr(lc.actions.Binary(3))
    assert made.world.delays == lc.delays.Geometric(mean=5)
    assert repr(made.policies["ucb"]) == repr(lc.OTFLinUCB(5, 10))


def test_theta_as_a_list_sets_the_dimension() -> None:
    made = parse(text(world=f"theta = [0.5, 0]\n{ACTIONS}\n{DELAYS}"))
    assert made.world.theta.tolist() == [0.5, 0.0]
    assert made.policies["ucb"].dim == 2


@pytest.mark.parametrize("arms", ["[[1, 0], [0, 0.5]]", '{ law = "fixed", arms = [[1, 0], [0, 0.5]] }'])
def test_actions_may_be_rows_of_arms(arms: str) -> None:
    made = parse(text(world=f"theta = [0.5, 0]\nactions = {arms}\n{DELAYS}"))
    drawn = made.world.actions.sample(np.random.default_rng(0), 1, made.world.theta)
    assert drawn.tolist() == [[[1.0, 0.0], [0.0, 0.5]]]


@pytest.mark.parametrize("law", ["binary", "uniform", "sphere"])
def test_every_action_law_has_a_name(law: str) -> None:
    made = parse(text(world=f'{THETA}\nactions = {{ law = "{law}", count = 4 }}\n{DELAYS}'))
    assert type(made.world.actions).__name__.lower() == law


@pytest.mark.parametrize(
    ("source", "law"),
    [
        ('{ law = "unit vectors" }', lc.actions.UnitVectors()),
        ('{ law = "random fixed", count = 4 }', lc.actions.RandomFixed(4)),
        ('{ law = "random fixed", count = 4, seed = 9 }', lc.actions.RandomFixed(4, seed=9)),
        ('{ law = "rotating", count = 9, visible = 4, period = 50, seed = 1 }', lc.actions.Rotating(9, 4, 50, seed=1)),
    ],
)
def test_laws_of_fixed_and_rotating_arms_have_their_parameters(source: str, law: lc.actions.ActionLaw) -> None:
    assert parse(text(world=f"{THETA}\nactions = {source}\n{DELAYS}")).world.actions == law


def test_theta_as_a_ramp_is_1_to_d_of_the_given_norm() -> None:
    made = parse(text(world=f'theta = {{ dim = 3, value = "ramp", norm = 0.5 }}\n{ACTIONS}\n{DELAYS}'))
    np.testing.assert_allclose(made.world.theta, np.array([1, 2, 3]) * 0.5 / 14**0.5)


def test_theta_may_change_at_rounds() -> None:
    made = parse(text(world=f'theta = {{ 0 = [0.1, 0.5], 9 = [0.5, 0.1] }}\nchange = "drift"\n{ACTIONS}\n{DELAYS}'))
    assert repr(made.world.schedule) == repr({0: [0.1, 0.5], 9: [0.5, 0.1]})
    assert 'change="drift"' in repr(made.world)


def test_world_may_have_logistic_rewards() -> None:
    made = parse(text(world=f'{THETA}\n{ACTIONS}\n{DELAYS}\nreward = "logistic"\nintercept = -2'))
    assert (made.world.reward, made.world.intercept) == ("logistic", -2.0)


@pytest.mark.parametrize(
    ("source", "law"),
    [
        (
            '{ law = "change point", before = { law = "never" }, after = { law = "fixed", delay = 3 }, change = 7 }',
            lc.delays.ChangePoint(lc.delays.Never(), lc.delays.Fixed(3), 7),
        ),
        (
            '{ law = "batched", of = { law = "fixed", delay = 3 }, period = 7 }',
            lc.delays.Batched(lc.delays.Fixed(3), 7),
        ),
        ('{ law = "geometric", mean = 5, start = 0 }', lc.delays.Geometric(5, start=0)),
        ('{ law = "fixed", delay = 3 }', lc.delays.Fixed(3)),
        ('{ law = "never" }', lc.delays.Never()),
        ('{ law = "pareto", shape = 0.8, scale = 10 }', lc.delays.Pareto(0.8, 10)),
        ('{ law = "lognormal", median = 9, sigma = 1, at_most = inf }', lc.delays.LogNormal(9, 1)),
        ('{ law = "criteo", seconds_per_round = 10 }', lc.delays.Criteo(10)),
        ('{ law = "criteo" }', lc.delays.Criteo()),
    ],
)
def test_every_delay_law_has_a_name(source: str, law: lc.delays.DelayLaw) -> None:
    assert parse(text(world=f"{THETA}\n{ACTIONS}\ndelays = {source}")).world.delays == law


def test_a_mixture_holds_laws_and_mixtures() -> None:
    inner = '{ law = "mixture", laws = [{ law = "never" }, { law = "fixed", delay = 2 }], weights = [0.5, 0.5] }'
    outer = f'{{ law = "mixture", laws = [{{ law = "fixed", delay = 1 }}, {inner}], weights = [0.25, 0.75] }}'
    expected = lc.delays.Mixture(
        [lc.delays.Fixed(1), lc.delays.Mixture([lc.delays.Never(), lc.delays.Fixed(2)], [0.5, 0.5])], [0.25, 0.75]
    )
    assert parse(text(world=f"{THETA}\n{ACTIONS}\ndelays = {outer}")).world.delays == expected


def test_an_empirical_law_from_a_list() -> None:
    law = parse(
        text(world=f'{THETA}\n{ACTIONS}\ndelays = {{ law = "empirical", delays = [4, 0, 7], weights = [1, 2, 1] }}')
    ).world.delays
    assert law.cdf(0) == 0.5


def test_every_policy_has_its_name() -> None:
    names = [name for name in experiment_file.POLICIES if name != "recommended"]  # a function: it has a test of its own
    made = parse(text(policies="\n".join(f'[policies."{n} here"]\npolicy = "{n}"\nwindow = 9' for n in names)))
    assert [type(policy).__name__ for policy in made.policies.values()] == names
    assert [name.removesuffix(" here") for name in made.policies] == names
    assert {ReleasedUCB, ReleasedTS} <= {type(policy) for policy in made.policies.values()}


def test_recommended_by_name_is_what_the_library_recommends() -> None:
    made = parse(text(policies=OURS)).policies["ours"]
    assert repr(made) == repr(lc.recommended(5, 10))


def test_parameters_reach_the_policy() -> None:
    made = parse(text(policies=f'{POLICY}\nridge = 2\ndelta = 0.2\nwidth = "buffered"\nexploration = 0'))
    assert repr(made.policies["ucb"]) == repr(
        lc.OTFLinUCB(5, 10, ridge=2, delta=0.2, width="buffered", exploration=0.0)
    )


def test_the_example_is_whole_and_so_are_its_alternatives() -> None:
    assert len(experiment_file.read_experiment(EXAMPLE).policies) == 6
    lines = re.findall(r"^# ((actions|delays) = [\[{].*)$", EXAMPLE.read_text(), re.MULTILINE)
    assert len(lines) == 8
    for line, key in lines:
        world = f"{THETA}\n{line}\n{DELAYS if key == 'actions' else ACTIONS}"
        parse(text(world=world))


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "marked.toml"
    path.write_text(text(), encoding="utf-8-sig")
    assert experiment_file.read_experiment(path).horizon == 50


def log_file(path: Path) -> Path:
    """Write a log: a decision a minute, each converting half an hour to two hours later."""
    decided = 60.0 * np.arange(2000)
    converted = np.where(np.arange(2000) % 3 > 0, decided + 1800.0 + 5400.0 * (np.arange(2000) % 97) / 97, np.nan)
    pl.DataFrame({"decided_at": decided, "converted_at": pl.Series(converted).fill_nan(None)}).write_parquet(path)
    return path


@pytest.mark.parametrize(
    ("top", "keys", "law"),
    [
        ("", "", lambda log: log.law()),
        ("per_day = 500", "", lambda log: log.law(per_day=500)),
        ("per_day = 500", ", per_day = 100", lambda log: log.law(per_day=100)),
        ("per_day = 500", ", unit = '10m'", lambda log: log.law(unit=600)),
    ],
)
def test_delays_come_from_a_log_beside_the_file(top: str, keys: str, law: Any, tmp_path: Path) -> None:
    log = lc.delays.read_conversions(log_file(tmp_path / "shop.parquet"))
    inner = f"{{ law = 'log', file = 'shop.parquet'{keys} }}"
    laws = f"[{inner}, {{ law = 'never' }}]"
    world = f"{THETA}\n{ACTIONS}\ndelays = {{ law = 'mixture', laws = {laws}, weights = [0.5, 0.5] }}"
    (tmp_path / "experiment.toml").write_text(text(top=f"horizon = 50\n{top}", world=world))
    made = experiment_file.read_experiment(tmp_path / "experiment.toml")
    assert made.per_day == (500 if top else None)
    at = np.array([1, 5, 30, 100])
    np.testing.assert_allclose(made.world.delays.cdf(at), law(log).cdf(at) / 2)


def test_a_histogram_from_lists() -> None:
    law = parse(
        text(world=f'{THETA}\n{ACTIONS}\ndelays = {{ law = "histogram", ends = [1, 4], shares = [1, 3] }}')
    ).world.delays
    assert law.cdf(0) == 0.25
