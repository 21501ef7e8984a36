"""Choices by known probabilities: `floor`, `ceiling`, `limits`, `draws` and `control`, and the algorithm of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from latecomer.core.state import Array, ExtraFields, scratch_field
from latecomer.errors import InputError
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.choice_probabilities import (
    NO_CONTROL,
    UNIFORM_CONTROL,
    choose_by_probabilities,
    drawn_propensity,
    probabilities_of_best,
    probabilities_of_samples,
    probabilities_of_scores,
)
from latecomer.policies.base.guard import probabilities_of_guarded_samples
from latecomer.policies.base.limits import (
    Limit,
    Limits,
    check_limits,
    limit_fields,
    limited_best,
    limited_guarded,
    limited_samples,
    limited_scores,
    list_limits,
)
from latecomer.policies.base.rng import Draw
from latecomer.validation import check_integer, check_share, short_repr

MAX_DRAWS = 65_536
_LARGEST_INDEX = 2**31
Control = Mapping[str, Any]
"""{"share": a share of the decisions, "policy": "uniform", an index, or the id of an action}."""


@dataclass(frozen=True)
class Randomisation:
    """The checked parameters. With none of them, choices are the algorithm's own."""

    floor: float = 0.0
    draws: int = 1
    ceiling: float = 1.0
    control_share: float = 0.0
    control_policy: str | int = "uniform"
    limits: tuple[Limit, ...] = ()

    @classmethod
    def check(
        cls,
        floor: float,
        draws: int,
        control: Control | None,
        ceiling: float = 1.0,
        limits: Limits | None = None,
    ) -> Self:
        """Return the parameters; `InputError` where one breaks a rule."""
        share, policy = _check_control(control)
        return cls(
            limits=check_limits(limits, floor=check_share("floor", floor)),
            floor=check_share("floor", floor),
            draws=_check_draws(draws),
            ceiling=_check_ceiling(ceiling),
            control_share=share,
            control_policy=policy,
        )

    @property
    def is_off(self) -> bool:
        """Tell whether the algorithm chooses by itself."""
        is_plain = self.floor == 0.0 and self.draws == 1 and self.control_share == 0.0 and self.ceiling == 1.0
        return is_plain and not self.limits

    @property
    def bounds_actions(self) -> bool:
        """Tell whether a choice takes the probabilities of all actions: there is a ceiling, or an action's limit."""
        return self.ceiling < 1.0 or bool(self.limits)

    @property
    def parameters(self) -> dict[str, Any]:
        """The policy's arguments that differ from their defaults."""
        given: dict[str, Any] = {"floor": self.floor} if self.floor else {}
        if self.draws > 1:
            given["draws"] = self.draws
        if self.ceiling < 1.0:
            given["ceiling"] = self.ceiling
        if self.limits:
            given["limits"] = list_limits(self.limits)
        if self.control_share:
            given["control"] = {"share": self.control_share, "policy": self.control_policy}
        return given

    @property
    def numbers(self) -> dict[str, float]:
        """The fields of the state that kernels read."""
        return {} if self.is_off else self.numbers_when_on

    @property
    def numbers_when_on(self) -> dict[str, float]:
        """The fields of a state that chooses by known probabilities, whether or not the parameters ask for it."""
        return {
            "floor": self.floor,
            "draws": float(self.draws),
            "ceiling": self.ceiling,
            "control_share": self.control_share,
            "control_index": float(self.control_index),
        }

    @property
    def is_control_named(self) -> bool:
        """Tell whether the control plays an action by its id, which only a caller can find in a set."""
        return self.control_share > 0.0 and isinstance(self.control_policy, str) and self.control_policy != "uniform"

    @property
    def control_index(self) -> int:
        """The index that the control plays in every set, or what stands for any action, or for none."""
        if isinstance(self.control_policy, int):
            return self.control_policy
        return UNIFORM_CONTROL if self.control_policy == "uniform" else NO_CONTROL

    def check_index(self, control: int, count: int) -> int:
        """Return the index that a named control plays in a set of `count` actions."""
        if not self.is_control_named:
            raise InputError(
                f"control is for a policy whose control is the id of an action; got {control!r}: leave it out",
                field="control",
            )
        index = check_integer("control", control, least=0)
        if index >= count:
            raise InputError(f"control must be the index of one of {count} actions; got {control!r}", field="control")
        return index

    def check_indices(self, controls: Sequence[int | None], sets: Sequence[Array] | Array) -> list[int | None]:
        """Return the index that a named control plays in each set of a batch; None where a set has none such."""
        if len(controls) != len(sets):
            raise InputError(
                f"controls must have an index or None for each of the {len(sets)} sets; got {len(controls)}",
                field="controls",
            )
        return [
            None if control is None else self.check_index(control, len(actions))
            for control, actions in zip(controls, sets, strict=True)
        ]


def _to_whole(value: Any) -> Any:
    """Return a whole number that came as a float, as JSON may have it, as an int."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check_ceiling(ceiling: float) -> float:
    found = check_share("ceiling", ceiling)
    if found == 0.0:
        raise InputError(f"ceiling must be above 0, a share of the choices; got {ceiling!r}", field="ceiling")
    return found


def _check_draws(draws: int) -> int:
    found = check_integer("draws", _to_whole(draws), least=1)
    if found > MAX_DRAWS:
        raise InputError(f"draws must be at most {MAX_DRAWS}, samples for one decision; got {draws!r}", field="draws")
    return found


def _check_control(control: Control | None) -> tuple[float, str | int]:
    if control is None:
        return 0.0, "uniform"
    example = 'such as {"share": 0.05, "policy": "uniform"}'
    if not isinstance(control, Mapping) or set(control) != {"share", "policy"}:
        raise InputError(
            f"control must have a share and a policy, {example}; got {short_repr(control)}", field="control"
        )
    try:
        share, policy = check_share("control: share", control["share"]), _to_whole(control["policy"])
    except InputError as error:
        raise InputError(str(error), field="control") from None
    if share == 1.0:
        raise InputError(f"control: share must be below 1, {example}; got {control['share']!r}", field="control")
    is_index = isinstance(policy, int | np.integer) and not isinstance(policy, bool) and 0 <= policy < _LARGEST_INDEX
    if not is_index and not (isinstance(policy, str) and policy):
        raise InputError(
            f'control: policy must be "uniform", the index of an action, or its id; got {short_repr(policy)}',
            field="control",
        )
    return share, int(policy) if is_index else str(policy)


_randomised: dict[str, Algorithm] = {}
"""By the key of the algorithm that is randomised: policies of one kind share it, and so their kernels."""


class RandomisedAlgorithm(Algorithm):
    """An algorithm that draws its choice by known probabilities; another process makes it of the same algorithm."""

    def __reduce__(self) -> Any:
        """Pickle the algorithm that is randomised."""
        return find_randomised, (self.randomises,)


def randomise(algorithm: Algorithm, randomisation: Randomisation) -> Algorithm:
    """Return the algorithm that draws its choice by known probabilities; itself, where that is off."""
    if randomisation.limits:
        return find_limited(algorithm)
    return algorithm if randomisation.is_off else find_randomised(algorithm)


_LIMITED = {
    probabilities_of_best: limited_best,
    probabilities_of_scores: limited_scores,
    probabilities_of_samples: limited_samples,
    probabilities_of_guarded_samples: limited_guarded,
}


class LimitedAlgorithm(Algorithm):
    """A randomised algorithm that keeps the limits of single actions; another process makes it of the same one."""

    def __reduce__(self) -> Any:
        """Pickle the algorithm that is randomised."""
        return find_limited, (self.randomises,)


def find_limited(algorithm: Algorithm) -> Algorithm:
    """Return the limited form of an algorithm, the same object each time."""
    key = f"{algorithm.key} with limits"
    if key not in _randomised:
        made = find_randomised(algorithm)

        def extra_fields(dim: int, span: int, ridge: float) -> ExtraFields:
            return {**made.extra_fields(dim, span, ridge), **limit_fields()}

        own = {each.name: getattr(made, each.name) for each in fields(made) if each.init}
        fill: Any = made.fill_probabilities
        changes = {
            "name": f"{made.name} and limits",
            "fill_probabilities": _LIMITED[fill],
            "extra_fields": extra_fields,
        }
        _randomised[key] = LimitedAlgorithm(**{**own, **changes})
    return _randomised[key]


def find_randomised(algorithm: Algorithm) -> Algorithm:
    """Return the randomised form of an algorithm, the same object each time."""
    if algorithm.is_randomised:
        return algorithm
    if algorithm.key not in _randomised:
        _randomised[algorithm.key] = _make_randomised(algorithm)
    return _randomised[algorithm.key]


def _make_randomised(algorithm: Algorithm) -> Algorithm:
    if algorithm.draw is Draw.NOTHING:
        fill = probabilities_of_best
    elif algorithm.scores_are_probabilities:
        fill = probabilities_of_scores
    elif algorithm.posterior is not None:
        fill = probabilities_of_samples if algorithm.guards is None else probabilities_of_guarded_samples
    else:
        raise InputError(
            f"floor, draws and control need an algorithm that says how it samples; {algorithm.name} has no posterior: "
            "give it one (latecomer.policies.base.algorithm.Algorithm)"
        )

    def extra_fields(dim: int, span: int, ridge: float) -> ExtraFields:
        return {**algorithm.extra_fields(dim, span, ridge), "signed_propensity": scratch_field()}

    own = {each.name: getattr(algorithm, each.name) for each in fields(algorithm) if each.init}
    changes = {
        "name": f"{algorithm.name} with propensities",
        "choose": choose_by_probabilities,
        "propose": algorithm.choose,
        "randomises": algorithm,
        "fill_probabilities": fill,
        "signed_propensity": drawn_propensity,
        "extra_fields": extra_fields,
    }
    return RandomisedAlgorithm(**{**own, **changes})
