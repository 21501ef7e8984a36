"""Delays of a log: their counts for the curve, and the conversions that are tested for dependence and drift."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from latecomer.delays.distribution import Floats
from latecomer.delays.estimation.dependence import DependenceTest, test_dependence
from latecomer.evaluation.decision_log import DecisionLog
from latecomer.evaluation.maturity import Cells, count_delays

_MOST_TESTED = 200_000
_MOST_FEATURES = 50


@dataclass(frozen=True, eq=False)
class DelayFacts:
    """The delays of a part of a log."""

    cells: Cells
    delays: Floats
    """Of the conversions within the window."""
    limits: Floats
    """Up to which delay each would have been seen."""
    decided: Floats
    actions: npt.NDArray[np.generic]
    """Item ids, or the features of the chosen actions; nothing where there are too many, or records."""


def measure_delays(log: DecisionLog, ends: Floats, part: int) -> DelayFacts:
    """Measure the delays of a part."""
    limit = pl.min_horizontal(log.until - pl.col("decided"), pl.lit(float(ends[-1])))
    rows = log.scan(part).with_columns(delay=pl.col("converted") - pl.col("decided"), limit=limit)
    action = "action" if log.layout.offer is None else pl.col("offer").list.get(pl.col("action")).alias("action")
    came = rows.filter(pl.col("delay") <= pl.col("limit")).select("delay", "limit", "decided", action)
    table = came.collect(engine="streaming")
    if len(table) > _MOST_TESTED:
        table = table.gather_every(-(-len(table) // _MOST_TESTED))
    return DelayFacts(
        cells=count_delays(log, ends, part),
        delays=table["delay"].to_numpy(),
        limits=table["limit"].to_numpy(),
        decided=table["decided"].to_numpy(),
        actions=_read_actions(log, table["action"]),
    )


def _read_actions(log: DecisionLog, actions: pl.Series) -> npt.NDArray[np.generic]:
    if log.items:
        return np.asarray(np.array(log.items)[actions.to_numpy()])
    if not isinstance(actions.dtype, pl.List) or actions.list.len().n_unique() != 1:
        return np.empty((len(actions), 0))
    features = np.array(actions.to_list(), np.float64)
    return features if features.shape[1] <= _MOST_FEATURES else np.empty((len(actions), 0))


def test_delays(facts: Sequence[DelayFacts]) -> dict[str, DependenceTest]:
    """Test whether delays depend on the action, and whether they drift."""
    merged = [np.concatenate([getattr(part, name) for part in facts]) for name in ("delays", "limits", "decided")]
    delays, limits, decided = merged
    tests = {"drift": test_dependence(delays, limits, decided)}
    actions = np.concatenate([part.actions for part in facts])
    if actions.ndim == 1 or actions.shape[1]:
        tests["action"] = test_dependence(delays, limits, actions)
    return tests


test_delays.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test
