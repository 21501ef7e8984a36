"""A bandit's descriptor: its number, name, uid, specification and seed, as the log records its creation."""

import re
import secrets
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from latecomer.durations import parse_duration
from latecomer.encoding.scales import check_scales
from latecomer.encoding.spec import EncoderSpec
from latecomer.encoding.spec_checks import check_spec
from latecomer.errors import ConflictError, InputError
from latecomer.policies.base.policy import LinearPolicy
from latecomer.service.bandit.events import CREATED, pack_text
from latecomer.service.bandit.spec_policies import make_challenger, make_policy, name_recommended
from latecomer.service.bandit_spec import BanditSpec, ChallengerSpec
from latecomer.service.messages import BanditInfo
from latecomer.validation import short_repr, to_plain_text

UNFINISHED_PREFIX = "."
"""Begins the name of a bandit that is still being replayed."""
_TIMES = ("window", "grace", "returns", "activation_timeout", "half_life")
"""Fields and parameters that may be times."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class BanditDescriptor(Struct, frozen=True, kw_only=True):
    """The log's record of a bandit's creation.

    `uid` is in the first event of its chain; `seed` is the policy's where its parameters give none; `skipped` counts
    the rounds that it lacks of the log that it was replayed from.
    """

    number: int
    name: str
    uid: str
    spec: BanditSpec
    seed: int
    stamp: int
    skipped: int = 0
    requested_spec: BanditSpec | None = None
    """The specification as the caller gave it; `spec` has "recommended" replaced by what it means."""

    @property
    def is_unfinished(self) -> bool:
        """True while it is being replayed, under a name that no caller can use."""
        return self.name.startswith(UNFINISHED_PREFIX)

    @property
    def control_id(self) -> str | None:
        """The id of the action that the control plays, where it plays one by its id."""
        control = self.spec.parameters.get("control")
        policy = control["policy"] if isinstance(control, dict) else None
        return policy if isinstance(policy, str) and policy != "uniform" else None

    def pack_created(self) -> bytes:
        """Return the event that creates the bandit, or renames it where its number exists."""
        return pack_text(CREATED, self.encode())

    def encode(self) -> bytes:
        """Return the descriptor as JSON; `InputError` where it could not be read back."""
        try:
            data = msgspec.json.encode(self)
            if msgspec.json.decode(data, type=BanditDescriptor) == self:
                return data
        except (TypeError, msgspec.MsgspecError) as error:
            raise InputError(f"dim, window and parameters must be plain numbers and texts; {error}") from None
        raise InputError(f"dim, window and parameters must be plain numbers and texts; got {self.spec!r}")

    def describe(self, *, quarantined: bool = False) -> BanditInfo:
        """Return what callers see of the bandit."""
        spec = self.spec
        return BanditInfo(
            name=self.name,
            dim=spec.dim,
            window=spec.window,
            policy=spec.policy,
            parameters=spec.parameters,
            features=spec.features,
            encoder=spec.encoder,
            log_offers=spec.log_offers,
            unit=spec.unit,
            grace=spec.grace,
            activation_timeout=spec.activation_timeout,
            attribution=spec.attribution,
            reward=spec.reward,
            returns=spec.returns,
            challenger=spec.challenger,
            created_at=datetime.fromtimestamp(self.stamp / 1e6, UTC),
            quarantined=quarantined,
        )

    def make_policy(self) -> LinearPolicy:
        """Return the policy as it was before its first round."""
        return make_policy(self.spec, self.seed)

    def make_challenger(self) -> LinearPolicy | None:
        """Return the challenger as it was before its first round; None where there is none."""
        return make_challenger(self.spec, self.seed)


def check_name(name: str) -> str:
    """Return the name; `InputError` where it is not safe in a path, a log and a shell."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"name must be 1 to 64 letters, digits, '.', '_' or '-', a letter or digit first; got {short_repr(name)}",
            field="name",
        )
    return to_plain_text(name)


def check_policy(name: str, requested: BanditSpec) -> LinearPolicy:
    """Make the policy of a specification; `InputError` where the name or the specification breaks a rule."""
    spec = resolve_spec(requested)
    policy = make_policy(spec, seed=0)
    make_challenger(spec, seed=0)
    _check_encoding(spec)
    make_descriptor(0, check_name(name), spec, requested=requested, stamp=0).encode()
    return policy


def _check_encoding(spec: BanditSpec) -> None:
    """Raise `InputError` where the scales or the encoder break a rule, or do not fit the bandit."""
    check_scales(spec.features, spec.dim)
    if spec.encoder is None:
        return
    if spec.features:
        raise InputError("features must be left out where there is an encoder: it has the scales", field="features")
    if check_spec(spec.encoder).dim != spec.dim:
        raise InputError(
            f"encoder must have the bandit's dim, {spec.dim}; got {spec.encoder.dim}: give the same", field="encoder"
        )


def make_descriptor(
    number: int, name: str, spec: BanditSpec, *, requested: BanditSpec, stamp: int, skipped: int = 0
) -> BanditDescriptor:
    """Return the descriptor of a new bandit, with a uid and a seed of its own."""
    return BanditDescriptor(
        number=number,
        name=name,
        uid=secrets.token_hex(8),
        spec=spec,
        seed=secrets.randbits(62),
        stamp=stamp,
        skipped=skipped,
        requested_spec=requested,
    )


def resolve_spec(spec: BanditSpec) -> BanditSpec:
    """Replace "recommended" and what is not given by what they mean today: a log must not change its meaning."""
    spec = msgspec.structs.replace(
        spec, grace=spec.resolved_grace, returns=spec.resolved_returns, unit=spec.resolved_unit
    )
    policy, parameters = name_recommended(spec.dim, spec.policy, spec.parameters)
    challenger = spec.challenger
    if challenger is not None:
        named, given = name_recommended(spec.dim, challenger.policy, challenger.parameters)
        challenger = msgspec.structs.replace(challenger, policy=named, parameters=given)
    return msgspec.structs.replace(spec, policy=policy, parameters=parameters, challenger=challenger)


def check_same_spec(descriptor: BanditDescriptor, requested: BanditSpec) -> None:
    """Raise `ConflictError` where a bandit was created from another specification; 168h and 7d are the same."""
    differences = min(
        (
            _list_differences(spec, requested)
            for spec in (descriptor.requested_spec or descriptor.spec, descriptor.spec)
        ),
        key=len,
    )
    if differences:
        raise ConflictError(
            f"bandit {descriptor.name!r} exists with another specification: {', '.join(differences)}; "
            "give the same, delete it, or choose another name"
        )


def _list_differences(spec: BanditSpec, requested: BanditSpec) -> list[str]:
    """Name each field that differs, with the bandit's value and the requested one."""
    ours, theirs = _flatten(spec), _flatten(requested)
    fields = [
        name
        for name in {**ours, **theirs}
        if not (name in ours and name in theirs and _interpret(name, ours[name]) == _interpret(name, theirs[name]))
    ]
    return [f"{name} is {_show(ours, name)}, not {_show(theirs, name)}" for name in fields]


def _flatten(spec: BanditSpec) -> dict[str, object]:
    """Return the fields of a specification, with each parameter and each feature as a field of its own."""
    timeout = spec.activation_timeout
    is_default = _interpret("activation_timeout", timeout) == _interpret("window", spec.window)
    return {
        "dim": spec.dim,
        "window": spec.window,
        "grace": spec.resolved_grace,
        "policy": spec.policy,
        "log_offers": spec.log_offers,
        "unit": spec.resolved_unit,
        "reward": spec.reward,
        "returns": spec.resolved_returns,
        "activation_timeout": None if is_default else timeout,
        "attribution": spec.attribution,
        **{f"parameters.{name}": value for name, value in spec.parameters.items()},
        "challenger": spec.challenger,
        **{f"features.{name}": scale for name, scale in spec.features.items()},
        **({} if spec.encoder is None else _flatten_encoder(spec.encoder)),
    }


def _flatten_encoder(encoder: EncoderSpec) -> dict[str, object]:
    """Return the fields of an encoder, with each feature as a field of its own."""
    fields = msgspec.structs.asdict(encoder)
    sides = {side: fields.pop(side) for side in ("context", "actions")}
    return {
        **{f"encoder.{name}": value for name, value in fields.items()},
        **{f"encoder.{side}.{feature.name}": feature for side, found in sides.items() for feature in found or ()},
    }


def _interpret(name: str, value: object) -> object:
    """Return what a field stands for: a time in any words, where 168h is 7d, and 7 rounds are never a time."""
    if isinstance(value, ChallengerSpec):
        parameters = {each: _interpret(each, given) for each, given in value.parameters.items()}
        return msgspec.structs.replace(value, parameters=parameters)
    if isinstance(value, str) and name.removeprefix("parameters.") in _TIMES:
        return parse_duration(value, name=name)
    return value


def _show(values: dict[str, object], name: str) -> str:
    return short_repr(values[name]) if name in values else "unset"
