"""Many worlds in one line for each policy: how good on the whole, how often worse, and how bad at the worst."""

import numpy as np
import polars as pl


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each policy of a table of scores, the least mean ratio first.

    `mean_ratio` and `geometric_mean` are of the ratios of mean regret to that of each world's best published policy,
    `above_one` the share of worlds where it is above 1, `worst` the largest, `worst_p95` the largest ratio of 95th
    percentiles. `to_known` and `to_undelayed` are geometric means against the learners of the floor, `worst_to_uniform`
    is the largest ratio to uniform play, `above_uniform` the number of worlds where it is above 1.
    """
    rows = []
    for (policy,), scores in table.group_by("policy", maintain_order=True):
        ratios, tails, uniform = (
            scores[name].to_numpy() for name in ("to_best_published", "p95_to_best_published", "to_uniform")
        )
        rows.append(
            {
                "policy": policy,
                "worlds": len(scores),
                "mean_ratio": float(np.mean(ratios)),
                "geometric_mean": _geometric_mean(ratios),
                "above_one": float(np.mean(ratios > 1.0)),
                "worst": float(np.max(ratios)),
                "worst_p95": float(np.max(tails)),
                "to_known": _geometric_mean(scores["to_known"].to_numpy()),
                "to_undelayed": _geometric_mean(scores["to_undelayed"].to_numpy()),
                "worst_to_uniform": float(np.max(uniform)),
                "above_uniform": int(np.sum(uniform > 1.0)),
            }
        )
    return pl.DataFrame(rows).sort("mean_ratio", nulls_last=True)


def _geometric_mean(ratios: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    """Return the geometric mean; not a number where a ratio is none."""
    return float(np.exp(np.mean(np.log(np.maximum(ratios, 1e-12)))))
