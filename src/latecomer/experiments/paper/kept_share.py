"""Regret against τ_m, the share of conversions that the window keeps: the paper's open question, measured.

Its upper bound has 1/τ_m and its lower bound 1/√τ_m, for the gap between actions that is the hardest at each τ_m. So
two curves are measured: one world whose gap stays, and for each τ_m the gap at which a policy has the most regret.
`scripts/draw_open_question.py` measures both at a longer horizon, with more gaps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from latecomer.core.state import Array
from latecomer.delays import Geometric
from latecomer.experiments.paper.experiments import Experiment
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.otf_lin_ucb import OTFLinUCB
from latecomer.simulation.actions import Fixed
from latecomer.simulation.world import World

ARMS, WINDOW, HORIZON = 3, 10, 30_000
SHARES = (0.8, 0.4, 0.2, 0.1, 0.05, 0.025)
THETA = (0.5, 0.5, 0.7)
BASE, GAPS = 0.4, (0.025, 0.05, 0.1, 0.2, 0.4)
"""Of the hardest gap: arms of 0.4, 0.4 and 0.4 plus the gap, and ‖θ‖ ≤ 1."""
EXACT, TIGHT, VARIANCE = "exact width (the paper's)", "tight width (ours)", "variance-aware width (ours)"
LINEAR = 0.5
"""A regret above this share of uniform play's has not begun to bend, and is left out of a fit."""


def make_policies(dim: int, window: int) -> dict[str, LinearPolicy]:
    """Make the three widths that have a theorem."""
    return {
        EXACT: OTFLinUCB(dim, window),
        TIGHT: OTFLinUCB(dim, window, width="tight"),
        VARIANCE: OTFLinUCB(dim, window, width="variance"),
    }


def make_experiment(theta: Array, share: float, horizon: int) -> Experiment:
    """Fixed arms, with geometric delays of which the window keeps that share."""
    mean = 1.0 / (1.0 - (1.0 - share) ** (1.0 / WINDOW))  # P(D ≤ m) = 1 − (1 − 1/μ)^m
    world = World(theta=theta, actions=Fixed(np.eye(ARMS)), delays=Geometric(mean=mean))
    return Experiment(world, make_policies(ARMS, WINDOW), horizon)


@dataclass(frozen=True)
class Point:
    """An experiment of one curve: which curve, at which share, with which gap."""

    curve: str
    share: float
    gap: float
    experiment: Experiment


FIXED_GAP, HARDEST_GAP = "gap of 0.2", "hardest gap"


@dataclass(frozen=True)
class Slope:
    """An exponent of τ_m, fitted, and its standard error over the runs."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ± {self.error:.2f}"


Slopes = dict[tuple[str, str], Slope | None]
"""By curve and policy."""


def list_points(*, quick: bool = False, horizon: int = HORIZON, gaps: Sequence[float] = GAPS) -> Iterator[Point]:
    """Yield the experiments of both curves; fewer and shorter ones where it is to be quick."""
    horizon = horizon // 10 if quick else horizon
    for share in SHARES[::2] if quick else SHARES:
        yield Point(FIXED_GAP, share, 0.2, make_experiment(np.array(THETA), share, horizon))
        for gap in gaps[-2:] if quick else gaps:
            theta = np.array([BASE, BASE, BASE + gap])
            yield Point(HARDEST_GAP, share, gap, make_experiment(theta, share, horizon))


def find_hardest(rows: pl.DataFrame) -> pl.DataFrame:
    """Return, for each curve, share and policy, the row of the gap with the most regret, and uniform play's there."""
    hardest = rows.sort("mean").group_by("curve", "share", "policy", maintain_order=True).last()
    uniform = (ARMS - 1) / ARMS * pl.col("gap") * pl.col("horizon")
    return hardest.with_columns(uniform.alias("uniform_play")).sort("curve", "policy", "share")


def fit_slopes(table: pl.DataFrame) -> Slopes:
    """Fit ln R = a + b·ln τ by curve and policy, where R has begun to bend; None where fewer than three points have.

    The error of b = Σ c_i ln R_i is that of the runs, √Σ (c_i·se_i/R_i)², the points being independent: each has a seed
    of its own.
    """
    slopes: Slopes = {}
    for (curve, policy), rows in table.group_by("curve", "policy", maintain_order=True):
        bent = rows.filter(pl.col("mean") <= LINEAR * pl.col("uniform_play"))
        slopes[str(curve), str(policy)] = _fit(bent) if len(bent) > 2 else None
    return slopes


def _fit(rows: pl.DataFrame) -> Slope:
    log_share, means = np.log(rows["share"].to_numpy()), rows["mean"].to_numpy()
    centred = log_share - log_share.mean()
    weights = centred / (centred @ centred)
    relative_errors = rows["standard_error"].to_numpy() / means
    return Slope(float(weights @ np.log(means)), float(np.linalg.norm(weights * relative_errors)))
