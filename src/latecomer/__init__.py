"""Latecomer decides now and learns from conversions that arrive late, or never.

Names load when they are first used, so that `import latecomer` takes no time; the first policy brings Numba.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from latecomer import errors

if TYPE_CHECKING:
    from latecomer import delays
    from latecomer.client.asynchronous import AsyncClient
    from latecomer.client.sync import Client
    from latecomer.policies.catalogue import load
    from latecomer.policies.greedy import Greedy
    from latecomer.policies.lin_ts import LinTS
    from latecomer.policies.lin_ucb import LinUCB
    from latecomer.policies.otf_lin_ts import OTFLinTS
    from latecomer.policies.otf_lin_ucb import OTFLinUCB
    from latecomer.policies.protocol import Policy
    from latecomer.policies.records import Decision, Verdict
    from latecomer.policies.uniform import Uniform
    from latecomer.service.embedded import open  # noqa: A004 - lc.open, as gzip.open
    from latecomer.simulation import actions
    from latecomer.simulation.result import Result
    from latecomer.simulation.simulate import simulate
    from latecomer.simulation.world import World

__version__ = "0.1.0"

_HOME = {
    "AsyncClient": "latecomer.client.asynchronous",
    "Client": "latecomer.client.sync",
    "Decision": "latecomer.policies.records",
    "Greedy": "latecomer.policies.greedy",
    "LinTS": "latecomer.policies.lin_ts",
    "LinUCB": "latecomer.policies.lin_ucb",
    "OTFLinTS": "latecomer.policies.otf_lin_ts",
    "OTFLinUCB": "latecomer.policies.otf_lin_ucb",
    "Policy": "latecomer.policies.protocol",
    "Result": "latecomer.simulation.result",
    "Uniform": "latecomer.policies.uniform",
    "Verdict": "latecomer.policies.records",
    "World": "latecomer.simulation.world",
    "load": "latecomer.policies.catalogue",
    "open": "latecomer.service.embedded",
    "simulate": "latecomer.simulation.simulate",
}

_MODULES = {"actions": "latecomer.simulation.actions", "delays": "latecomer.delays"}

__all__ = [
    "AsyncClient",
    "Client",
    "Decision",
    "Greedy",
    "LinTS",
    "LinUCB",
    "OTFLinTS",
    "OTFLinUCB",
    "Policy",
    "Result",
    "Uniform",
    "Verdict",
    "World",
    "actions",
    "delays",
    "errors",
    "load",
    "open",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = import_module(_MODULES[name])
    elif name in _HOME:
        value = getattr(_module(name), name)
    else:
        raise AttributeError(f"module 'latecomer' has no attribute {name!r}")
    globals()[name] = value
    return value


def _module(name: str) -> ModuleType:
    try:
        return import_module(_HOME[name])
    except ModuleNotFoundError as error:
        if str(error.name).startswith("latecomer"):
            raise
        raise errors.MissingPackageError(
            f"latecomer.{name} needs the package {error.name}: pip install 'latecomer[service]'", name=error.name
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
