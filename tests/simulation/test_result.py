"""A result: conversions beside regret, a summary, days, and pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.simulation.result import Result
from latecomer.simulation.run import Episode
from latecomer.simulation.trace import Traces

THETA = np.array([0.5, 0.6, 0.1, 0.3, 0.2])
DELAYS = lc.delays.Mixture([lc.delays.Geometric(mean=15), lc.delays.Never()], [0.7, 0.3])
WORLD = lc.World(theta=THETA, actions=lc.actions.Uniform(6), delays=DELAYS)


class First:
    """The first action in every round."""

    def decide(self, actions: Any) -> int:
        return 0

    def convert(self, round: int) -> None: ...


POLICIES: dict[str, Any] = {"first": First, "ucb": lc.OTFLinUCB(5, 20), "random": lc.Uniform(5, 20)}


def play(**more: Any) -> lc.Result:
    """Play so few rounds that nothing is compiled."""
    arguments: dict[str, Any] = {"policies": POLICIES, "horizon": 130, "runs": 3, "seed": 5, "progress": False, **more}
    return lc.simulate(WORLD, **arguments)


@pytest.fixture(scope="module")
def result() -> lc.Result:
    return play()


def count_by_hand(run: int, horizon: int) -> np.ndarray:
    """Conversions of the first action, with the numbers of the episode: those that come, however late."""
    episode = Episode(WORLD, horizon, seed=5, run=run)
    sets = np.concatenate([episode.block(first).sets for first in range(0, horizon, 1024)])
    comes = (episode.uniforms < sets[:, 0] @ THETA) & (episode.delays < lc.delays.NEVER)
    return np.cumsum(comes)


def test_conversions_are_those_that_come_however_late() -> None:
    result = play(policies={"first": First}, horizon=1301)
    counted = result.conversions("first")
    assert counted.shape == (3, 1301)
    for run in range(3):
        np.testing.assert_array_equal(counted[run], count_by_hand(run, 1301))
        assert (Episode(WORLD, 1301, seed=5, run=run).delays == lc.delays.NEVER).mean() == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("policy", ["first", "ucb", "random"])
def test_final_conversions_are_the_last_column(policy: str, result: lc.Result) -> None:
    np.testing.assert_array_equal(result.final_conversions(policy), result.conversions(policy)[:, -1])
    assert (np.diff(result.conversions(policy), axis=1) <= 1).all()


@pytest.mark.parametrize(("runs", "horizon"), [(25, 70), pytest.param(40, 3000, marks=pytest.mark.soak)])
def test_regret_and_conversions_add_up(runs: int, horizon: int) -> None:
    """Whatever plays: P(it comes)·(best − regret) conversions are to be expected, here to 4 standard errors."""
    result = play(runs=runs, horizon=horizon)
    for policy in ("ucb", "random"):
        means = []
        for run in range(runs):
            episode = Episode(WORLD, horizon, seed=5, run=run)
            best = sum(episode.block(first).means.max(axis=1).sum() for first in range(0, horizon, 1024))
            means.append(0.7 * (best - result.final(policy)[run]))
        off = result.final_conversions(policy) - np.array(means)
        assert abs(off.mean()) < 4 * off.std(ddof=1) / np.sqrt(runs), policy


def test_threads_count_the_same_conversions() -> None:
    one, two = play(jobs=1), play(jobs=2)
    for policy in one.policies:
        np.testing.assert_array_equal(one.conversions(policy), two.conversions(policy))


def test_summary_has_a_row_for_each_policy(result: lc.Result) -> None:
    summary = result.summary(value=25.0)
    assert summary.columns == ["policy", "regret", "standard_error", "regret_95", "conversions", "value"]
    assert summary["policy"].to_list() == result.policies
    row = summary.row(1, named=True)
    finals, conversions = result.final("ucb"), result.final_conversions("ucb")
    assert row["regret"] == pytest.approx(finals.mean())
    assert row["standard_error"] == pytest.approx(finals.std(ddof=1) / np.sqrt(3))
    assert row["regret_95"] == pytest.approx(np.quantile(finals, 0.95))
    assert row["conversions"] == pytest.approx(conversions.mean())
    assert row["value"] == pytest.approx(25.0 * conversions.mean())
    assert play(runs=1, horizon=10).summary()["standard_error"].is_nan().all()


def test_a_rate_gives_days() -> None:
    result = play(per_day=10)
    row = result.summary(value=2.0).row(0, named=True)
    assert result.per_day == 10
    assert row["conversions_a_day"] == pytest.approx(row["conversions"] / 13.0)
    assert row["value_a_day"] == pytest.approx(2.0 * row["conversions"] / 13.0)
    axes = result.plot().axes[0]
    assert axes.get_xlabel() == "day, at 10 decisions a day"
    assert axes.get_xlim() == pytest.approx((0.0, 13.0))
    assert axes.get_ylabel() == "lost sales, against the best choices"
    assert "lost sales in 13 days" in axes.get_title()
    assert result.plot(title="mine").axes[0].get_title() == "mine"


def make_result(finals: dict[str, list[float]], per_day: float | None) -> Result:
    """Return a result of two rounds, with these regrets at its end."""
    traces = Traces(list(finals), len(next(iter(finals.values()))), 2)
    for name, ends in finals.items():
        traces.by_policy[name].regret[:] = np.column_stack([np.zeros(len(ends)), ends])
    return Result(traces, runs_requested=traces.runs, per_day=per_day)


@pytest.mark.parametrize(
    ("finals", "per_day", "title"),
    [
        ({"a": [9.0, 9.4], "b": [5.0, 5.4]}, None, "b does best: regret of 5 in 2 rounds; a: 9"),
        ({"a": [9.0, 9.4], "b": [5.0, 5.6]}, 0.5, "b does best: 5 lost sales in 4 days; a: 9"),
        ({"a": [9.0, 5.0], "b": [5.0, 7.6]}, None, "b: regret of 6 in 2 rounds; a does not clearly differ, 7"),
        ({"a": [9.0], "b": [5.0]}, None, "b: regret of 5 in 2 rounds; a does not clearly differ, 9"),
        ({"a": [9.0, 9.4]}, None, "a: regret of 9 in 2 rounds"),
    ],
)
def test_a_title_says_the_finding(finals: dict[str, list[float]], per_day: float | None, title: str) -> None:
    axes = make_result(finals, per_day).plot().axes[0]
    assert axes.get_title().strip("\u200b") == title


@pytest.mark.parametrize(("quantity", "read"), [("regret", "regret"), ("conversions", "conversions")])
def test_a_picture_shows_the_mean_of_every_policy(quantity: Any, read: str, tmp_path: Path, result: lc.Result) -> None:
    figure = result.plot(quantity)
    (axes,) = figure.axes
    assert [text.get_text().strip("\u200b") for text in axes.get_legend().get_texts()] == result.policies  # type: ignore[union-attr]
    for line, policy in zip(axes.get_lines(), result.policies, strict=True):
        assert line.get_ydata()[-1] == pytest.approx(getattr(result, read)(policy)[:, -1].mean())  # type: ignore[index]
        assert line.get_xdata()[-1] == 130  # type: ignore[index]
    assert axes.get_legend().get_title().get_text() == "mean, and 5 to 95 %, of 3 runs"  # type: ignore[union-attr]
    figure.savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    shown = figure._repr_svg_()  # type: ignore[attr-defined]  # what Jupyter asks for
    assert "</svg>" in shown
    assert shown == figure._repr_svg_()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda result: result.plot("profit"), r"quantity must be one of 'regret', 'conversions'; got 'profit'"),
        (lambda result: result.conversions("x"), r"policy must be one of 'first', 'ucb', 'random'; got 'x'"),
        (lambda result: result.summary(value=-1), r"value must be"),
        (lambda _: play(per_day=0), r"per_day must be"),
    ],
)
def test_mistakes_are_named(call: Any, message: str) -> None:
    result = play(horizon=10, runs=1)
    with pytest.raises(InputError, match=message):
        call(result)
