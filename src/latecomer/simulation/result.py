"""The result of a simulation as arrays, frames, a summary, a picture or a file."""

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.extras import explain_missing_package
from latecomer.simulation.trace import Trace, Traces
from latecomer.validation import check_choice, check_positive

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


class Result:
    """Cumulative pseudo-regret and conversions by policy, run and round."""

    def __init__(self, traces: Traces, *, runs_requested: int, per_day: float | None = None) -> None:
        self._traces = traces
        self.runs_requested = runs_requested
        self.per_day = per_day
        """Decisions a day, where the simulation was told: pictures and summaries then count days."""

    @property
    def policies(self) -> list[str]:
        """Names of the policies, in the order given."""
        return list(self._traces.by_policy)

    @property
    def runs(self) -> int:
        """The number of runs that were finished."""
        return self._traces.runs

    @property
    def horizon(self) -> int:
        """The number of rounds in a run, T."""
        return self._traces.horizon

    @property
    def is_complete(self) -> bool:
        """True where every run was finished; an interrupted simulation leaves those that are done."""
        return self.runs == self.runs_requested

    def regret(self, policy: str) -> Array:
        """(runs, horizon): cumulative pseudo-regret, Σ ⟨a*_t − A_t, θ⟩."""
        return self._trace(policy).regret

    def final(self, policy: str) -> Array:
        """(runs,): the regret at the horizon."""
        return np.asarray(self.regret(policy)[:, -1])

    def conversions(self, policy: str) -> npt.NDArray[np.int32]:
        """(runs, horizon): how many of the decisions so far convert, however late; those that never come are not in it.

        Within the horizon, or within a policy's window, fewer arrive: what is counted here is what decisions earn. The
        array is made when asked for; a result holds one bit a round.
        """
        return np.cumsum(self._converted(policy), axis=1, dtype=np.int32)

    def final_conversions(self, policy: str) -> npt.NDArray[np.int64]:
        """(runs,): how many of all decisions convert, however late."""
        return np.asarray(self._converted(policy).sum(axis=1, dtype=np.int64))

    def _converted(self, policy: str) -> npt.NDArray[np.uint8]:
        return np.unpackbits(self._trace(policy).converted, axis=1, count=self.horizon)

    def _trace(self, policy: str) -> Trace:
        if policy not in self._traces.by_policy:
            raise InputError(f"policy must be one of {', '.join(map(repr, self.policies))}; got {policy!r}")
        return self._traces.by_policy[policy]

    # ---- frames ----

    def summary(self, *, value: float = 1.0) -> "pl.DataFrame":
        """A row for each policy, over the runs, at the horizon.

        `regret` is the mean and `standard_error` its standard error, `regret_95` the 95th percentile of the runs,
        `conversions` the mean number of conversions, and `value` what they are worth, where `value` is the worth of
        one. Where the rate is known, `conversions_a_day` and `value_a_day` follow.
        """
        with explain_missing_package("Result.summary"):
            import polars as pl  # noqa: PLC0415

        worth, rows = check_positive("value", value), []
        for name in self.policies:
            finals, conversions = self.final(name), float(self.final_conversions(name).mean())
            row = {
                "policy": name,
                "regret": float(finals.mean()),
                "standard_error": float(_standard_error(finals)),
                "regret_95": float(np.quantile(finals, 0.95)),
                "conversions": conversions,
                "value": worth * conversions,
            }
            if self.per_day is not None:
                daily = conversions * self.per_day / self.horizon
                row |= {"conversions_a_day": daily, "value_a_day": worth * daily}
            rows.append(row)
        return pl.DataFrame(rows)

    def regret_by_round(self, rounds: npt.ArrayLike | None = None) -> "pl.DataFrame":
        """Mean, standard error and the 5 to 95 % band of the regret at the given rounds (all of them by default)."""
        with explain_missing_package("Result.regret_by_round"):
            import polars as pl  # noqa: PLC0415

        at = np.arange(1, self.horizon + 1) if rounds is None else np.asarray(rounds, np.int64)
        if len(outside := at[(at < 1) | (at > self.horizon)]):
            raise InputError(f"rounds must be from 1 to the horizon, {self.horizon}; got {outside[0]}", field="rounds")
        parts = []
        for name in self.policies:
            values = self.regret(name)[:, at - 1]
            low, high = np.quantile(values, [0.05, 0.95], axis=0)
            parts.append(
                pl.DataFrame(
                    {
                        "policy": [name] * len(at),
                        "round": at,
                        "mean": values.mean(axis=0),
                        "standard_error": _standard_error(values),
                        "low": low,
                        "high": high,
                    }
                )
            )
        return pl.concat(parts)

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
                "regret": np.concatenate([self.regret(name).ravel() for name in policies]),
            }
        )

    def write(self, path: str | PathLike[str]) -> None:
        """Write the tidy frame as Parquet; the same result gives the same bytes."""
        if Path(path).suffix not in ("", ".parquet"):
            raise InputError(
                f"path must end with .parquet; got '{fspath(path)}': for other formats, use to_frame() and polars",
                field="path",
            )
        self.to_frame().write_parquet(Path(path))

    # ---- pictures ----

    def plot(self, quantity: Literal["regret", "conversions"] = "regret", *, title: str | None = None) -> "Figure":
        """Draw the mean of every policy with the band that holds 90 % of the runs, over rounds or days.

        Its title says which policy does best and by how much, unless `title` says otherwise. With a rate (`per_day`)
        it has days and lost sales, else rounds and regret. A notebook shows the figure;
        `figure.savefig("regret.svg")` writes it, or `savefig("regret.png", dpi=220)`.
        """
        check_choice("quantity", quantity, ("regret", "conversions"))
        with explain_missing_package("Result.plot"):
            from latecomer.simulation.plot import plot_result  # noqa: PLC0415 - brings matplotlib

        return plot_result(self, quantity=quantity, title=title)


def _standard_error(values: Array) -> Array:
    """Return the standard error of the mean of the first axis; not a number, where there is one run."""
    if len(values) == 1:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))
