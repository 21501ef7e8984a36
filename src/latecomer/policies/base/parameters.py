"""The keyword arguments that every policy takes, declared once."""

import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypedDict

from latecomer.durations import Duration, Span, parse_window
from latecomer.errors import InputError
from latecomer.policies.base.clock import Clock
from latecomer.policies.base.limits import Limits
from latecomer.policies.base.randomisation import Control
from latecomer.policies.base.reward import Reward
from latecomer.policies.base.rng import Seed
from latecomer.policies.base.subjects import Attribution
from latecomer.policies.base.surrogates import DEFAULT_PRIOR
from latecomer.validation import check_integer, check_positive, suggest

LARGEST_SET = 1024
"""The largest dimension of a confidence set."""


class CommonParameters(TypedDict, total=False):
    """Arguments of every policy, which its constructor takes as `**common`.

    `seed` is an int, or a NumPy generator; None takes fresh entropy. `clock` tells the time where the window is a time
    and `at` is not given. `floor`, `ceiling`, `limits`, `draws` and `control` make propensities known, `guard` gives a
    guarantee, `half_life` lets old rounds count less, `grace` waits for late reports, `activation_timeout` for
    activations, `attribution` is for conversions of subjects, `reward` for amounts, and `returns` for those that are
    taken back late; `stages` are signals before a conversion, and `stage_prior` how many rounds must tell of them: see
    `LinearPolicy`.
    """

    half_life: Span | None
    floor: float
    ceiling: float
    limits: Limits | None
    draws: int
    control: Control | None
    guard: float | None
    grace: Duration | None
    activation_timeout: Span | None
    attribution: Attribution
    reward: Reward | None
    returns: Span | None
    stages: Sequence[str] | None
    stage_prior: float
    seed: Seed
    clock: Clock | None


_DEFAULTS = {
    "half_life": None,
    "floor": 0.0,
    "ceiling": 1.0,
    "limits": None,
    "draws": 1,
    "control": None,
    "guard": None,
    "grace": None,
    "activation_timeout": None,
    "attribution": "last",
    "reward": None,
    "returns": None,
    "stages": None,
    "stage_prior": DEFAULT_PRIOR,
    "seed": None,
    "clock": None,
}


def expand_common(function: Callable[..., object]) -> inspect.Signature:
    """Return a signature, without `self`, that has the arguments which `**common` stands for by name."""
    signature = inspect.signature(function)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "self"]
    if own[-1].kind is inspect.Parameter.VAR_KEYWORD:
        annotations = CommonParameters.__annotations__
        own[-1:] = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotations[name])
            for name, default in _DEFAULTS.items()
            if name not in signature.parameters
        ]
    return signature.replace(parameters=own)


def explain_unknown(policy: type, *names: str) -> TypeError:
    """Make the error of keyword arguments that a policy does not have, with what may have been meant."""
    known = inspect.signature(policy).parameters
    return TypeError(f"{policy.__name__}() has no parameter {names[0]!r}{suggest(names[0], known)}")


def check_dim(dim: int, *, has_set: bool) -> int:
    """Return d; `InputError` where it is no dimension that a policy can have, with a confidence set or without."""
    found = check_integer("dim", dim, least=1)
    if found > 8192:
        raise InputError(
            f"dim must be at most 8192, for V is kept whole; got {dim!r}: hash the features into fewer", field="dim"
        )
    if has_set and found > LARGEST_SET:
        raise InputError(
            f"dim must be at most {LARGEST_SET} with a confidence set, which keeps twelve matrices; got {dim!r}: "
            "hash the features into fewer",
            field="dim",
        )
    return found


def check_ridge(ridge: float) -> float:
    """Return λ; `InputError` where doubles could not tell it from 0."""
    found = check_positive("ridge", ridge)
    if not 1e-12 <= found <= 1e12:
        raise InputError(
            f"ridge must be between 1e-12 and 1e12, for doubles to tell it from 0; got {ridge!r}, 1 is usual",
            field="ridge",
        )
    return found


def list_crediting(
    grace: timedelta, attribution: str, activation_timeout: Span | None, returns: Span | None
) -> dict[str, Any]:
    """Return the arguments about late and attributed conversions that differ from their defaults."""
    given: dict[str, Any] = {"grace": grace} if grace else {}
    if attribution != "last":
        given["attribution"] = attribution
    times = {"activation_timeout": activation_timeout, "returns": returns}
    return {**given, **{name: parse_window(time, name=name) for name, time in times.items() if time is not None}}
