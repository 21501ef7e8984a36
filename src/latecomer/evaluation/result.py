"""The result of an evaluation: a table, its details, warnings, words and a picture."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from latecomer.atomic_write import replace_file
from latecomer.delays.estimation.curve import DelayCurve
from latecomer.delays.estimation.dependence import DependenceTest
from latecomer.evaluation.betting import BettingInterval
from latecomer.evaluation.decision_log import DecisionLog
from latecomer.evaluation.estimators import (
    LOGGED,
    Estimate,
    effective_conversions,
    estimate,
    estimate_difference,
    estimate_lift,
    mean_weight,
)
from latecomer.evaluation.judgement import warn_of_log, warn_of_looks, warn_of_target
from latecomer.evaluation.maturity import Maturity
from latecomer.evaluation.passes import TargetSums
from latecomer.evaluation.target import Target
from latecomer.pictures import write_picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MONTH = timedelta(days=30).total_seconds()
COLUMNS = ("policy", "estimator", "value", "low", "high", "lift", "lift_low", "lift_high", "effective_conversions")
"""The columns of `table`."""


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Estimates of the earnings of each policy on a log, by `evaluate`."""

    table: pl.DataFrame
    """A row for each policy and estimator: policy, estimator, value (conversions within the window, or their value,
    for each decision), low and high, lift over "logged" on the same rounds as a share, lift_low and lift_high, and
    effective_conversions."""
    details: pl.DataFrame
    """All rows with the standard error, closed rounds alone (closed_value, closed_low, closed_high), the rounds,
    the mean weight and its error, the largest weight, the logged policy's value on the same rounds (logged_value),
    what the policy adds in a month (extra, extra_low, extra_high), and the interval that is valid at every look
    (anytime_low, anytime_high), where it was asked for."""
    warnings: list[str]
    """Warnings to read before these figures are used."""
    curve: DelayCurve | None
    """The delay curve within the window; none where conversions come at once."""
    tests: dict[str, DependenceTest]
    """Tests of delays: dependence on the "action", and "drift"."""
    facts: dict[str, Any]
    """Rows and conversions of the log, its dirty rows, the window, the confidence, the traffic and the money."""

    def __repr__(self) -> str:
        return f"Evaluation({', '.join(self.table['policy'].unique(maintain_order=True))})"

    def text(self) -> str:
        """Return the result in words."""
        from latecomer.evaluation.text import write_text  # noqa: PLC0415 - it takes an Evaluation

        return write_text(self)

    def plot(self) -> "Figure":
        """Draw the estimates with their intervals, for a slide."""
        from latecomer.extras import explain_missing_package  # noqa: PLC0415

        with explain_missing_package("Evaluation.plot"):
            from latecomer.evaluation.plot import plot_evaluation  # noqa: PLC0415 - brings matplotlib
        return plot_evaluation(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        tests = {
            name: {"statistic": test.statistic, "p_value": test.p_value, "degrees": test.degrees}
            for name, test in self.tests.items()
        }
        return {
            "policies": self.details.to_dicts(),
            "warnings": list(self.warnings),
            "tests": tests,
            **self.facts,
        }

    def to_json(self) -> str:
        """Return the result as JSON; a number that is not known is null."""
        return json.dumps(_without_nan(self.to_dict()), indent=2, ensure_ascii=False)

    def write(self, folder: str | PathLike[str]) -> list[Path]:
        """Write the table as CSV and Parquet, everything as JSON, the words, and the picture; return their paths."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        figure = self.plot()
        writers: dict[str, Callable[[Path], object]] = {
            "evaluation.csv": self.table.write_csv,
            "evaluation.parquet": self.details.write_parquet,
            "evaluation.json": lambda path: path.write_text(self.to_json() + "\n", encoding="utf-8"),
            "evaluation.txt": lambda path: path.write_text(self.text() + "\n", encoding="utf-8"),
            "evaluation.png": lambda path: write_picture(figure, path, suffix=".png"),
            "evaluation.svg": lambda path: write_picture(figure, path, suffix=".svg"),
        }
        for name, write in writers.items():
            with replace_file(Path(folder, name)) as path:
                write(path)
        return [Path(folder, name) for name in writers]


def make_evaluation(
    log: DecisionLog,
    found: Mapping[str, TargetSums],
    maturity: Maturity,
    *,
    targets: Mapping[str, Target],
    curve: DelayCurve | None,
    tests: dict[str, DependenceTest],
    estimators: Sequence[str],
    confidence: float,
    money: float | None,
    currency: str,
    traffic: float | None,
    bounds: Mapping[str, BettingInterval],
) -> Evaluation:
    """Make the result of all sums."""
    logged_name = next(name for name, target in targets.items() if target.is_logged)
    monthly = traffic if traffic is not None else _measure_traffic(log, maturity)
    warnings, rows = [*warn_of_log(log, found[logged_name], tests), *warn_of_looks(bounds)], []
    for name, one in found.items():
        is_logged = targets[name].is_logged
        for estimator in estimators:
            kind = LOGGED if is_logged else estimator
            row, matured, closed = _make_row(one, kind, maturity, confidence=confidence, monthly=monthly)
            lost = warn_of_target(name, one, matured, closed, is_logged=is_logged)
            warnings += [warning for warning in lost if warning not in warnings]
            bound = bounds[name].bounds if name in bounds else (None, None)
            rows.append(
                {"policy": name, "estimator": estimator, **row} | {"anytime_low": bound[0], "anytime_high": bound[1]}
            )
    details = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.selectors.float().fill_nan(None))
    facts = {
        "log": log.name,
        "decisions": found[logged_name].sums.rounds,
        "conversions": log.conversions if curve is None else curve.conversions,
        "rows": log.counts.rows,
        "skipped": log.skipped,
        "window": maturity.window,
        "confidence": confidence,
        "traffic": monthly,
        "money": money,
        "currency": currency,
        "is_value": log.layout.value is not None,
        "is_given_traffic": traffic is not None,
    }
    return Evaluation(details.select(COLUMNS), details, warnings, curve, tests, facts)


def _make_row(
    found: TargetSums, kind: str, maturity: Maturity, *, confidence: float, monthly: float | None
) -> tuple[dict[str, Any], Estimate, Estimate]:
    """Return the figures of one target, its estimate, and that of closed rounds alone."""
    sums = found.sums
    matured = estimate(sums, kind, maturity.greenwood, confidence=confidence)
    logged = estimate(sums, LOGGED, maturity.greenwood, confidence=confidence)
    closed = estimate(sums.select_closed(), kind, maturity.greenwood, confidence=confidence)
    lift = (0.0, 0.0, 0.0) if kind == LOGGED else estimate_lift(matured, logged, sums, maturity.greenwood)
    extra = estimate_difference(matured, logged, sums, maturity.greenwood)
    mean, error = mean_weight(sums)
    row = {
        "value": matured.value,
        "low": matured.interval[0],
        "high": matured.interval[1],
        **dict(zip(("lift", "lift_low", "lift_high"), lift, strict=True)),
        "effective_conversions": effective_conversions(sums),
        "standard_error": matured.standard_error,
        "closed_value": closed.value,
        "closed_low": closed.interval[0],
        "closed_high": closed.interval[1],
        "logged_value": logged.value,
        "rounds": sums.rounds,
        "mean_weight": mean,
        "mean_weight_error": error,
        "largest_weight": sums.largest_weight,
        **{
            name: None if monthly is None else part * monthly
            for name, part in zip(("extra", "extra_low", "extra_high"), extra, strict=True)
        },
    }
    return row, matured, closed


def _measure_traffic(log: DecisionLog, maturity: Maturity) -> float | None:
    """Return the log's decisions in thirty days; None where its times are not seconds."""
    span = log.last - log.first
    if span <= 0.0 or maturity.counts_rounds:
        return None
    return log.decisions / span * _MONTH


def _without_nan(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_nan(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_without_nan(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
