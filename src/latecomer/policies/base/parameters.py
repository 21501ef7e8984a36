"""The keyword arguments that every policy takes, declared once."""

import inspect
from collections.abc import Callable
from typing import TypedDict

from latecomer.policies.base.clock import Clock
from latecomer.policies.base.randomisation import Control
from latecomer.policies.base.rng import Seed


class CommonParameters(TypedDict, total=False):
    """Arguments of every policy, which its constructor takes as `**common`.

    `seed` is an int, or a NumPy generator; None takes fresh entropy. `clock` tells the time where the window is a time
    and `at` is not given. `floor`, `draws` and `control` make propensities known, and `guard` gives a guarantee:
    see `LinearPolicy`.
    """

    floor: float
    draws: int
    control: Control | None
    guard: float | None
    seed: Seed
    clock: Clock | None


_DEFAULTS = {"floor": 0.0, "draws": 1, "control": None, "guard": None, "seed": None, "clock": None}


def expand_common(function: Callable[..., object]) -> inspect.Signature:
    """Return a signature, without `self`, that has the arguments which `**common` stands for by name."""
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    if own[-1].kind is inspect.Parameter.VAR_KEYWORD:
        annotations = CommonParameters.__annotations__
        own[-1:] = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotations[name])
            for name, default in _DEFAULTS.items()
        ]
    return signature.replace(parameters=own)
