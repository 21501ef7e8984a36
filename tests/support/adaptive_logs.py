"""Logs of an adaptive policy, many at once: Thompson sampling on what has arrived, conversions on their way.

Five actions and two contexts. Every 50 rounds the policy draws from its posteriors, and plays an action from
e = 0.9·(share of draws that it wins) + 0.1/5 until the next time: e is the exact propensity.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latecomer.delays.distribution import Floats
from latecomer.delays.readers.delay_cells import estimate_curve, make_round_grid
from latecomer.evaluation.sums import Sums, sum_rounds

Integers = npt.NDArray[np.int64]

RATES = np.array([[0.05, 0.08, 0.11, 0.14, 0.16], [0.16, 0.13, 0.12, 0.09, 0.06]])
"""p(x, a), within the window."""
TARGET = np.array([[0.1, 0.1, 0.2, 0.3, 0.3], [0.3, 0.3, 0.2, 0.1, 0.1]])
"""π(a | x)."""
TRUTH = float((TARGET * RATES).sum(axis=1).mean())
WINDOW, MEAN_DELAY, BLOCK, FLOOR, DRAWS = 2000, 800.0, 50, 0.1, 64


@dataclass(frozen=True)
class AdaptiveLogs:
    """A row a log, a column a round."""

    context: Integers
    action: Integers
    propensity: Floats
    delay: Floats
    """Rounds up to a conversion within the window; infinite where there is none."""
    earned: Floats
    """By log: the mean of Σ e(x, a)·p(x, a) over its rounds and both contexts, which the policy that made it earns."""

    @property
    def age(self) -> Integers:
        return np.arange(self.action.shape[1], dtype=np.int64)[::-1]

    def weights(self, run: int) -> Floats:
        chosen = TARGET[self.context[run], self.action[run]]
        return np.asarray(chosen / self.propensity[run])


def play(runs: int, *, rounds: int = 4000, seed: int = 0, is_adaptive: bool = True) -> AdaptiveLogs:
    """Play; half of the rounds are still open at the end, where there are twice as many as the window has.

    Without `is_adaptive`, every action always has the same chance.
    """
    rng = np.random.default_rng(seed)
    actions = RATES.shape[1]
    context = rng.integers(0, 2, (runs, rounds))
    action, propensity = np.zeros((runs, rounds), np.int64), np.zeros((runs, rounds))
    waits = rng.geometric(1 / MEAN_DELAY, (runs, 2 * rounds))  # of those within the window, one for each round
    order = np.argsort(waits > WINDOW, axis=1, kind="stable")[:, :rounds]
    waits = np.take_along_axis(waits, order, axis=1).astype(np.float64)
    coins = rng.random((runs, rounds))
    delay = np.full((runs, rounds), np.inf)
    earned = np.zeros(runs)
    every = np.arange(runs)
    for start in range(0, rounds, BLOCK):
        arrived = delay[:, :start] + np.arange(start) < start
        wins = np.zeros((runs, 2, actions))
        plays = np.zeros((runs, 2, actions))
        for one in range(2):
            for arm in range(actions):
                here = (context[:, :start] == one) & (action[:, :start] == arm)
                wins[:, one, arm], plays[:, one, arm] = (here & arrived).sum(axis=1), here.sum(axis=1)
        drawn = rng.beta(1 + wins, 1 + plays - wins, (DRAWS, *wins.shape)).argmax(axis=-1)
        won = (drawn[..., None] == np.arange(actions)).mean(axis=0)
        chances = (1 - FLOOR) * won + FLOOR / actions if is_adaptive else np.full(won.shape, 1 / actions)
        block = slice(start, start + BLOCK)
        earned += (chances * RATES).sum(axis=2).mean(axis=1) * len(coins[0, block]) / rounds
        shown = chances[every[:, None], context[:, block]]  # runs, block, actions
        picked = (rng.random((*shown.shape[:2], 1)) > np.cumsum(shown, axis=-1)).sum(axis=-1).clip(0, actions - 1)
        action[:, block] = picked
        propensity[:, block] = np.take_along_axis(shown, picked[..., None], axis=-1)[..., 0]
        converts = coins[:, block] < RATES[context[:, block], picked]
        delay[:, block] = np.where(converts, waits[:, block], np.inf)
    return AdaptiveLogs(context, action, propensity, delay, earned)


def sums_of(logs: AdaptiveLogs, run: int, *, window: int = WINDOW) -> tuple[Sums, Floats]:
    """Return the sums of one log, with its own delay curve and a model fitted on the past; and Greenwood's terms."""
    ends = make_round_grid(window)
    age, delay = logs.age.astype(np.float64), logs.delay[run]
    watched = np.searchsorted(ends, age, side="right").astype(np.int64)
    place = np.searchsorted(ends, delay, side="left").astype(np.int64)
    came = place < watched
    cells = {"delay": np.where(np.isfinite(delay), place, -1), "watched": watched, "len": np.ones(len(age), np.int64)}
    curve = estimate_curve(cells, ends, prior=1.0)
    maturity = np.concatenate([[0.0], curve.cdf])[watched]
    outcomes = came.astype(np.float64)
    rates = fit_on_the_past(logs.action[run], outcomes, maturity)
    found = sum_rounds(
        logs.weights(run),
        outcomes,
        maturity,
        watched=watched,
        bins=len(ends),
        predicted=np.take_along_axis(rates, logs.action[run][:, None], axis=1)[:, 0],
        expected=(TARGET[logs.context[run]] * rates).sum(axis=1),
    )
    return found, curve.greenwood


def fit_on_the_past(action: Integers, outcomes: Floats, maturity: Floats) -> Floats:
    """Matured rates of each action, from the rounds of earlier blocks of 200."""
    rates = np.zeros((len(action), RATES.shape[1]))
    for start in range(200, len(action), 200):
        for arm in range(RATES.shape[1]):
            here = action[:start] == arm
            rates[start : start + 200, arm] = (outcomes[:start][here].sum() + 1) / (maturity[:start][here].sum() + 10)
    return rates
