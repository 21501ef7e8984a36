"""The setting of a report: how much to run, where, and the tables that its sections share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from latecomer.delays import Criteo, CriteoDelays, DelayLaw, read_criteo
from latecomer.experiments.paper import experiments as paper
from latecomer.simulation.result import Result
from latecomer.simulation.simulate import Engine, prepare_here, simulate


@dataclass
class Setting:
    """Size and place of the runs; `before` is called with the name of what runs next."""

    runs: int = 100
    seed: int = 0
    engine: Engine | None = None
    quick: bool = False
    criteo: Path | None = None
    before: Callable[[str], None] = lambda _: None
    _read: CriteoDelays | None = field(default=None, repr=False)

    def delays(self) -> CriteoDelays | None:
        """The file's delays, where a file was given; read once."""
        if self.criteo is not None and self._read is None:
            self._read = read_criteo(self.criteo)
        return self._read

    def heavy_delays(self) -> DelayLaw:
        """Return the law of the heavy-tailed experiment: the file's, or the built-in one."""
        read = self.delays()
        return Criteo() if read is None else read.law()

    def play(self, experiment: paper.Experiment, what: str) -> Result:
        """Simulate; an interrupted simulation interrupts the report."""
        self.before(what)
        prepare_here(self.engine, experiment.world, experiment.policies, experiment.horizon * self.runs)
        result = simulate(
            experiment.world,
            experiment.policies,
            horizon=experiment.horizon,
            runs=self.runs,
            seed=self.seed,
            engine=self.engine,
            progress=False,
        )
        if not result.is_complete:
            raise KeyboardInterrupt
        return result


def final_table(result: Result, **key: object) -> pl.DataFrame:
    """Mean, standard error and band at the horizon, with the columns that say which experiment this was."""
    table = result.regret_by_round([result.horizon]).drop("round")
    return table.select([pl.lit(value).alias(name) for name, value in key.items()] + [pl.all()])


def curve_table(result: Result, **key: object) -> pl.DataFrame:
    """Regret by round."""
    return result.regret_by_round().select([pl.lit(value).alias(name) for name, value in key.items()] + [pl.all()])


def read_cell(table: pl.DataFrame, policy: str, **key: object) -> float:
    """Return the mean of one policy in the row that `key` says."""
    return float(table.filter(pl.col("policy") == policy, **key)["mean"].item())
