"""The result of a simulation as arrays, a tidy frame, a summary, or a file."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.extras import explain_missing_package

if TYPE_CHECKING:
    import polars as pl


class Result:
    """Cumulative pseudo-regret by policy, run and round."""

    def __init__(self, regrets: dict[str, Array], *, runs_requested: int) -> None:
        self._regrets = regrets
        self.runs_requested = runs_requested

    @property
    def policies(self) -> list[str]:
        """Names of the policies, in the order given."""
        return list(self._regrets)

    @property
    def runs(self) -> int:
        """The number of runs that were finished."""
        return len(next(iter(self._regrets.values())))

    @property
    def horizon(self) -> int:
        """The number of rounds in a run, T."""
        return int(next(iter(self._regrets.values())).shape[1])

    @property
    def is_complete(self) -> bool:
        """True where every run was finished; an interrupted simulation leaves those that are done."""
        return self.runs == self.runs_requested

    def regret(self, policy: str) -> Array:
        """(runs, horizon): cumulative pseudo-regret, Σ ⟨a*_t − A_t, θ⟩."""
        if policy not in self._regrets:
            raise InputError(f"policy must be one of {', '.join(map(repr, self._regrets))}; got {policy!r}")
        return self._regrets[policy]

    def final(self, policy: str) -> Array:
        """(runs,): the regret at the horizon."""
        return np.asarray(self.regret(policy)[:, -1])

    def to_frame(self) -> "pl.DataFrame":
        """A tidy frame: policy, run (from 0), round (from 1), regret."""
        with explain_missing_package("Result.to_frame"):
            import polars as pl  # noqa: PLC0415 - only where it is used

        runs, horizon, policies = self.runs, self.horizon, self.policies
        return pl.DataFrame(
            {
                "policy": pl.Series(np.repeat(np.arange(len(policies)), runs * horizon)).replace_strict(
                    dict(enumerate(policies)), return_dtype=pl.Enum(policies)
                ),
                "run": np.tile(np.repeat(np.arange(runs), horizon), len(policies)),
                "round": np.tile(np.arange(1, horizon + 1), len(policies) * runs),
                "regret": np.concatenate([self._regrets[name].ravel() for name in policies]),
            }
        )

    def summary(self, rounds: Array | None = None) -> "pl.DataFrame":
        """Mean, standard error and the 5 to 95 % band at the given rounds (all of them by default)."""
        with explain_missing_package("Result.summary"):
            import polars as pl  # noqa: PLC0415

        at = np.arange(1, self.horizon + 1) if rounds is None else np.asarray(rounds, np.int64)
        parts = []
        for name, regret in self._regrets.items():
            values = regret[:, at - 1]
            low, high = np.quantile(values, [0.05, 0.95], axis=0)
            error = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.full(len(at), np.nan)
            parts.append(
                pl.DataFrame(
                    {
                        "policy": [name] * len(at),
                        "round": at,
                        "mean": values.mean(axis=0),
                        "standard_error": error,
                        "low": low,
                        "high": high,
                    }
                )
            )
        return pl.concat(parts)

    def write(self, path: str | PathLike[str]) -> None:
        """The tidy frame as Parquet; the same result gives the same bytes."""
        self.to_frame().write_parquet(Path(path))
