"""Delay laws: how many rounds a conversion takes, or whether it never comes.

Names load when they are first used, so that a law loads no more of SciPy than it needs, and polars is
loaded by the readers alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from latecomer.delays.distribution import NEVER, DelayLaw, draw
from latecomer.extras import explain_missing_package

if TYPE_CHECKING:
    from latecomer.delays.estimation.curve import DelayCurve
    from latecomer.delays.estimation.density import log10_density
    from latecomer.delays.estimation.dependence import DependenceTest, test_dependence
    from latecomer.delays.estimation.estimate import DelayEstimate
    from latecomer.delays.laws.batched import Batched
    from latecomer.delays.laws.change_point import ChangePoint
    from latecomer.delays.laws.criteo import Criteo
    from latecomer.delays.laws.empirical import Empirical
    from latecomer.delays.laws.fixed import Fixed, Never
    from latecomer.delays.laws.geometric import Geometric
    from latecomer.delays.laws.histogram import Histogram
    from latecomer.delays.laws.log_normal import LogNormal
    from latecomer.delays.laws.mixture import Mixture
    from latecomer.delays.laws.pareto import Pareto
    from latecomer.delays.readers.conversion_log import ConversionLog, read_conversions
    from latecomer.delays.readers.criteo import read_criteo
    from latecomer.delays.readers.criteo_report import CriteoDelays, CriteoReport, Skipped

_HOME = {
    "Batched": "latecomer.delays.laws.batched",
    "ConversionLog": "latecomer.delays.readers.conversion_log",
    "Criteo": "latecomer.delays.laws.criteo",
    "CriteoDelays": "latecomer.delays.readers.criteo_report",
    "CriteoReport": "latecomer.delays.readers.criteo_report",
    "DelayCurve": "latecomer.delays.estimation.curve",
    "DelayEstimate": "latecomer.delays.estimation.estimate",
    "DependenceTest": "latecomer.delays.estimation.dependence",
    "ChangePoint": "latecomer.delays.laws.change_point",
    "Empirical": "latecomer.delays.laws.empirical",
    "Fixed": "latecomer.delays.laws.fixed",
    "Geometric": "latecomer.delays.laws.geometric",
    "Histogram": "latecomer.delays.laws.histogram",
    "LogNormal": "latecomer.delays.laws.log_normal",
    "Mixture": "latecomer.delays.laws.mixture",
    "Never": "latecomer.delays.laws.fixed",
    "Pareto": "latecomer.delays.laws.pareto",
    "Skipped": "latecomer.delays.readers.criteo_report",
    "log10_density": "latecomer.delays.estimation.density",
    "read_conversions": "latecomer.delays.readers.conversion_log",
    "read_criteo": "latecomer.delays.readers.criteo",
    "test_dependence": "latecomer.delays.estimation.dependence",
}

__all__ = [
    "NEVER",
    "Batched",
    "ChangePoint",
    "ConversionLog",
    "Criteo",
    "CriteoDelays",
    "CriteoReport",
    "DelayCurve",
    "DelayEstimate",
    "DelayLaw",
    "DependenceTest",
    "Empirical",
    "Fixed",
    "Geometric",
    "Histogram",
    "LogNormal",
    "Mixture",
    "Never",
    "Pareto",
    "Skipped",
    "draw",
    "log10_density",
    "read_conversions",
    "read_criteo",
    "test_dependence",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'latecomer.delays' has no attribute {name!r}")
    with explain_missing_package(f"latecomer.delays.{name}"):
        value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
