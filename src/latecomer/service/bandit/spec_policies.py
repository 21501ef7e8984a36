"""The policies of a specification: the one that decides, and the challenger where there is one."""

import inspect
from typing import Any

from msgspec import structs

from latecomer.errors import InputError
from latecomer.evaluation.contested_decisions import knows_probabilities
from latecomer.policies import recommended
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.reward import Reward
from latecomer.policies.registry import policy_class, policy_names
from latecomer.service.bandit_spec import DEFAULT_POLICY, BanditSpec
from latecomer.service.durations import parse_window_text
from latecomer.validation import short_repr, suggest

NOT_PARAMETERS = ("dim", "window", "grace", "activation_timeout", "attribution", "reward", "returns", "clock")
"""Arguments of a policy that a specification has beside its parameters."""


def name_recommended(dim: int, policy: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a policy and its parameters, with "recommended" replaced by what it means today."""
    if policy != DEFAULT_POLICY:
        return policy, parameters
    return recommended.POLICY, recommended.complete(dim, {**recommended.PROPENSITIES, **parameters})


def make_challenger(spec: BanditSpec, seed: int) -> LinearPolicy | None:
    """Return the challenger of a resolved specification; `InputError` where it cannot be compared with the policy."""
    challenger = spec.challenger
    if challenger is None:
        return None
    try:
        made = make_policy(
            structs.replace(spec, policy=challenger.policy, parameters=challenger.parameters), seed=seed + 1
        )
    except InputError as error:
        raise InputError(f"challenger: {error}", field="challenger") from None
    for what, policy in (("policy", make_policy(spec, seed)), ("challenger", made)):
        if policy.parameters.get("control") is not None:
            raise InputError(
                f"control must be left out of the {what}'s parameters where there is a challenger: the policy is its "
                "control",
                field="challenger",
            )
        if not knows_probabilities(policy):
            raise InputError(
                f"challenger: both policies must know the probability of each choice; the {what}, "
                f"{type(policy).__name__}, does not: give it draws of 64, or a floor",
                field="challenger",
            )
    return made


def _make_reward(spec: BanditSpec) -> Reward | None:
    """Return the reward as the policy takes it; `InputError` where the unit is another."""
    if isinstance(spec.reward, str):
        return None
    if spec.unit is not None and (spec.unit.scale, spec.unit.name) != (spec.reward.scale, spec.reward.unit or "units"):
        raise InputError("unit must be left out where the reward has a scale: it is the reward's", field="unit")
    return {"scale": spec.reward.scale, "aggregate": spec.reward.aggregate}


def make_policy(spec: BanditSpec, seed: int) -> LinearPolicy:
    """Return the policy of a resolved specification; `InputError` where there is none such."""
    if spec.policy not in policy_names():
        choices = (DEFAULT_POLICY, *policy_names())
        raise InputError(
            f"policy must be one of {', '.join(choices)}; got {short_repr(spec.policy)}{suggest(spec.policy, choices)}",
            field="policy",
        )
    made: Any = policy_class(spec.policy)
    known = [name for name in inspect.signature(made).parameters if name not in NOT_PARAMETERS]
    unknown = sorted(set(spec.parameters) - set(known))
    if unknown:
        raise InputError(
            f"parameters of {spec.policy} must be among {', '.join(known)}; got {short_repr(unknown[0])}"
            f"{suggest(unknown[0], known)}",
            field="parameters",
        )
    for name, value in spec.parameters.items():
        if isinstance(value, bool):
            raise InputError(f"parameters: {name} must be a number or a text; got {value!r}", field="parameters")
    parameters = {"seed": seed, **spec.parameters} if "seed" in known else spec.parameters
    if type(seed_ := parameters.get("seed", 0)) is not int or seed_ < 0:
        raise InputError(
            f"parameters: seed must be a whole number of at least 0; got {short_repr(seed_)}: or leave it out",
            field="parameters",
        )
    try:
        policy: LinearPolicy = made(
            spec.dim,
            parse_window_text(spec.window),
            grace=spec.grace,
            activation_timeout=spec.activation_timeout,
            attribution=spec.attribution,
            reward=_make_reward(spec),
            returns=spec.returns,
            **parameters,
        )
    except InputError as error:
        if error.field in parameters:
            raise InputError(f"parameters: {error}", field="parameters") from None
        raise
    return policy
