"""Latecomer decides now and learns from conversions that arrive late, or never.

Names load when they are first used, so that `import latecomer` takes no time; the first policy brings Numba.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from latecomer import errors

if TYPE_CHECKING:
    from latecomer.policies.catalogue import load
    from latecomer.policies.greedy import Greedy
    from latecomer.policies.lin_ts import LinTS
    from latecomer.policies.lin_ucb import LinUCB
    from latecomer.policies.otf_lin_ts import OTFLinTS
    from latecomer.policies.otf_lin_ucb import OTFLinUCB
    from latecomer.policies.protocol import Policy
    from latecomer.policies.records import Decision, Verdict
    from latecomer.policies.uniform import Uniform

__version__ = "0.1.0"

_HOME = {
    "Decision": "latecomer.policies.records",
    "Greedy": "latecomer.policies.greedy",
    "LinTS": "latecomer.policies.lin_ts",
    "LinUCB": "latecomer.policies.lin_ucb",
    "OTFLinTS": "latecomer.policies.otf_lin_ts",
    "OTFLinUCB": "latecomer.policies.otf_lin_ucb",
    "Policy": "latecomer.policies.protocol",
    "Uniform": "latecomer.policies.uniform",
    "Verdict": "latecomer.policies.records",
    "load": "latecomer.policies.catalogue",
}

__all__ = [
    "Decision",
    "Greedy",
    "LinTS",
    "LinUCB",
    "OTFLinTS",
    "OTFLinUCB",
    "Policy",
    "Uniform",
    "Verdict",
    "errors",
    "load",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'latecomer' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
