"""Latecomer decides now and learns from conversions that arrive late, or never.

Names load when they are first used, so that `import latecomer` takes no time; the first policy imports Numba. The
policies' names come from `policies.registry`; their import lines here are for type checkers.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from latecomer import errors
from latecomer.extras import explain_missing_package
from latecomer.policies.registry import POLICIES as _POLICIES

if TYPE_CHECKING:
    from latecomer import delays, evaluation, theory
    from latecomer.client.aio import AsyncClient
    from latecomer.client.sync import Client
    from latecomer.encoding.dim_advice import advise_dim
    from latecomer.encoding.encoder import Encoder
    from latecomer.evaluation.contest import Contest
    from latecomer.evaluation.decision_log import DecisionLog
    from latecomer.evaluation.evaluate import evaluate
    from latecomer.evaluation.read_log import read_log
    from latecomer.evaluation.result import Evaluation
    from latecomer.experiments.window.advice import advise_window
    from latecomer.policies.base.decision import Decision, Verdict
    from latecomer.policies.base.protocol import Policy
    from latecomer.policies.greedy import Greedy as Greedy
    from latecomer.policies.imputed_lin_ts import ImputedLinTS as ImputedLinTS
    from latecomer.policies.lin_ts import LinTS as LinTS
    from latecomer.policies.lin_ucb import LinUCB as LinUCB
    from latecomer.policies.logistic_lin_ts import LogisticLinTS as LogisticLinTS
    from latecomer.policies.matured_lin_ts import MaturedLinTS as MaturedLinTS
    from latecomer.policies.matured_lin_ucb import MaturedLinUCB as MaturedLinUCB
    from latecomer.policies.otf_lin_ts import OTFLinTS as OTFLinTS
    from latecomer.policies.otf_lin_ucb import OTFLinUCB as OTFLinUCB
    from latecomer.policies.recommended import recommended
    from latecomer.policies.registry import load
    from latecomer.policies.uniform import Uniform as Uniform
    from latecomer.policies.waiting_lin_ts import WaitingLinTS as WaitingLinTS
    from latecomer.policies.waiting_lin_ucb import WaitingLinUCB as WaitingLinUCB
    from latecomer.service.embedded import open  # noqa: A004 - lc.open, as gzip.open
    from latecomer.service.messages import Conversion
    from latecomer.simulation import actions
    from latecomer.simulation.result import Result
    from latecomer.simulation.simulate import simulate
    from latecomer.simulation.stages import Stage
    from latecomer.simulation.world import World

__version__ = "0.1.0"

_HOME = {
    **_POLICIES,
    "AsyncClient": "latecomer.client.aio",
    "Client": "latecomer.client.sync",
    "Conversion": "latecomer.service.messages",
    "Contest": "latecomer.evaluation.contest",
    "Decision": "latecomer.policies.base.decision",
    "DecisionLog": "latecomer.evaluation.decision_log",
    "Encoder": "latecomer.encoding.encoder",
    "Evaluation": "latecomer.evaluation.result",
    "Policy": "latecomer.policies.base.protocol",
    "Result": "latecomer.simulation.result",
    "Stage": "latecomer.simulation.stages",
    "Verdict": "latecomer.policies.base.decision",
    "World": "latecomer.simulation.world",
    "advise_dim": "latecomer.encoding.dim_advice",
    "advise_window": "latecomer.experiments.window.advice",
    "evaluate": "latecomer.evaluation.evaluate",
    "load": "latecomer.policies.registry",
    "read_log": "latecomer.evaluation.read_log",
    "recommended": "latecomer.policies.recommended",
    "open": "latecomer.service.embedded",
    "simulate": "latecomer.simulation.simulate",
}

_MODULES = {
    "actions": "latecomer.simulation.actions",
    "delays": "latecomer.delays",
    "evaluation": "latecomer.evaluation",
    "theory": "latecomer.theory",
}

__all__ = [
    "AsyncClient",
    "Client",
    "Contest",
    "Conversion",
    "Decision",
    "DecisionLog",
    "Encoder",
    "Evaluation",
    "Policy",
    "Result",
    "Stage",
    "Verdict",
    "World",
    "actions",
    "advise_dim",
    "advise_window",
    "delays",
    "errors",
    "evaluate",
    "evaluation",
    "load",
    "open",
    "read_log",
    "recommended",
    "simulate",
    "theory",
]
__all__.extend(_POLICIES)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = import_module(_MODULES[name])
    elif name in _HOME:
        with explain_missing_package(f"latecomer.{name}"):
            value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'latecomer' has no attribute {name!r}{_suggest(name)}")
    globals()[name] = value
    return value


def _suggest(name: str) -> str:
    """Name the part of the package that has it, or the public name that is nearest."""
    if name.startswith("_"):  # others ask for such names, and do not read the answer
        return ""
    for part, module in _MODULES.items():
        if name in import_module(module).__all__:
            return f": it is latecomer.{part}.{name}"
    return import_module("latecomer.validation").suggest(name, __all__)  # type: ignore[no-any-return]


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
