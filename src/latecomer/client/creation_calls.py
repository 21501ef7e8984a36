"""The call of the clients that creates a bandit."""

from collections.abc import Mapping
from typing import Any, TypedDict

from latecomer.client.protocol import Call, bandit_path, encode_json
from latecomer.durations import Duration, Span
from latecomer.encoding.encoder import Encoder, read_encoder
from latecomer.encoding.scales import parse_scales
from latecomer.errors import InputError
from latecomer.policies.base.subjects import Attribution
from latecomer.service.bandit_spec import parse_challenger, parse_reward_spec, parse_unit
from latecomer.service.durations import format_grace, format_window
from latecomer.service.messages import BanditInfo


class SpecOptions(TypedDict, total=False):
    """The optional arguments that create a bandit."""

    dim: int | None
    policy: str | None
    parameters: Mapping[str, Any] | None
    features: Mapping[str, Any] | None
    encoder: Encoder | Mapping[str, Any] | None
    log_offers: bool
    unit: Mapping[str, Any] | None
    grace: Duration | None
    activation_timeout: Span | None
    attribution: Attribution | None
    reward: Mapping[str, Any] | str | None
    returns: Span | None
    challenger: Mapping[str, Any] | None


def create(
    name: str,
    *,
    window: Span,
    dim: int | None = None,
    policy: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    features: Mapping[str, Any] | None = None,
    encoder: Encoder | Mapping[str, Any] | None = None,
    log_offers: bool = True,
    unit: Mapping[str, Any] | None = None,
    grace: Duration | None = None,
    activation_timeout: Span | None = None,
    attribution: Attribution | None = None,
    reward: Mapping[str, Any] | str | None = None,
    returns: Span | None = None,
    challenger: Mapping[str, Any] | None = None,
) -> Call[BanditInfo]:
    """Make the call that creates a bandit."""
    encoding = None if encoder is None else read_encoder(encoder)
    if dim is None and encoding is None:
        raise InputError("dim must be given, or an encoder, which has one", field="dim")
    dim = encoding.dim if dim is None and encoding is not None else dim
    spec: dict[str, Any] = {"dim": dim, "window": format_window(window), "parameters": dict(parameters or {})}
    if policy is not None:
        spec["policy"] = policy
    if features is not None:
        spec["features"] = parse_scales(features)
    if encoding is not None:
        spec["encoder"] = encoding
    if not log_offers:
        spec["log_offers"] = False
    if unit is not None:
        spec["unit"] = parse_unit(unit)
    if grace is not None:
        spec["grace"] = format_grace(grace)
    if activation_timeout is not None:
        spec["activation_timeout"] = format_window(activation_timeout, name="activation_timeout")
    if attribution is not None:
        spec["attribution"] = attribution
    if reward is not None:
        spec["reward"] = parse_reward_spec(reward)
    if returns is not None:
        spec["returns"] = format_window(returns, name="returns")
    if challenger is not None:
        spec["challenger"] = parse_challenger(challenger)
    return Call(method="PUT", path=bandit_path(name), gives=BanditInfo, content=encode_json(spec))
