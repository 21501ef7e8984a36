"""Delay laws: how many rounds a conversion takes, or whether it never comes.

Names load when they are first used, so that a law brings no more of SciPy than it needs, and polars comes with the
reader alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from latecomer.delays.law import NEVER, DelayLaw, draw

if TYPE_CHECKING:
    from latecomer.delays.conversion_log import ConversionLog, read_conversions
    from latecomer.delays.criteo import read_criteo
    from latecomer.delays.criteo_law import Criteo
    from latecomer.delays.criteo_report import CriteoDelays, CriteoReport, Skipped
    from latecomer.delays.curve import DelayCurve
    from latecomer.delays.density import log10_density
    from latecomer.delays.drift import Drift
    from latecomer.delays.empirical import Empirical
    from latecomer.delays.estimate import DelayEstimate
    from latecomer.delays.fixed import Fixed, Never
    from latecomer.delays.geometric import Geometric
    from latecomer.delays.log_normal import LogNormal
    from latecomer.delays.mixture import Mixture
    from latecomer.delays.pareto import Pareto

_HOME = {
    "ConversionLog": "latecomer.delays.conversion_log",
    "Criteo": "latecomer.delays.criteo_law",
    "CriteoDelays": "latecomer.delays.criteo_report",
    "CriteoReport": "latecomer.delays.criteo_report",
    "DelayCurve": "latecomer.delays.curve",
    "DelayEstimate": "latecomer.delays.estimate",
    "Drift": "latecomer.delays.drift",
    "Empirical": "latecomer.delays.empirical",
    "Fixed": "latecomer.delays.fixed",
    "Geometric": "latecomer.delays.geometric",
    "LogNormal": "latecomer.delays.log_normal",
    "Mixture": "latecomer.delays.mixture",
    "Never": "latecomer.delays.fixed",
    "Pareto": "latecomer.delays.pareto",
    "Skipped": "latecomer.delays.criteo_report",
    "log10_density": "latecomer.delays.density",
    "read_conversions": "latecomer.delays.conversion_log",
    "read_criteo": "latecomer.delays.criteo",
}

__all__ = [
    "NEVER",
    "ConversionLog",
    "Criteo",
    "CriteoDelays",
    "CriteoReport",
    "DelayCurve",
    "DelayEstimate",
    "DelayLaw",
    "Drift",
    "Empirical",
    "Fixed",
    "Geometric",
    "LogNormal",
    "Mixture",
    "Never",
    "Pareto",
    "Skipped",
    "draw",
    "log10_density",
    "read_conversions",
    "read_criteo",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'latecomer.delays' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
