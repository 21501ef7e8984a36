"""A bandit's beginning: its specification made certain, and the record from which it can be made again."""

import inspect
import re
import secrets
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from latecomer.errors import ConflictError, InputError
from latecomer.policies import recommended
from latecomer.policies.base.bulk import convert, record, revoke, summarise
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.registry import policy_class, policy_names
from latecomer.service.bandit.events import CREATED, DECISION, Payload, text_event
from latecomer.service.durations import window_of
from latecomer.service.messages import DEFAULT_POLICY, BanditInfo, BanditSpec
from latecomer.service.scales import check_scales
from latecomer.validation import short_repr, suggest

UNFINISHED = "."
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NOT_PARAMETERS = ("dim", "window", "clock")


class BanditDescriptor(Struct, frozen=True, kw_only=True):
    """What the log says of a bandit when it is created.

    `epoch` begins its chain of the log; `seed` is what it draws with where its parameters name none; `skipped` counts
    the rounds that it lacks of the log that it was replayed from.
    """

    number: int
    name: str
    epoch: str
    spec: BanditSpec
    seed: int
    stamp: int
    skipped: int = 0
    asked: BanditSpec | None = None
    """The specification as it was asked for, where `spec` says what it meant."""

    @property
    def is_unfinished(self) -> bool:
        """Whether it is still being replayed, under a name that nobody may ask for."""
        return self.name.startswith(UNFINISHED)

    def event(self) -> bytes:
        """Its creation, or the same number's under another name, as an event."""
        return text_event(CREATED, self.encoded())

    def encoded(self) -> bytes:
        """As the log holds it; `InputError` where the log could not tell it again."""
        try:
            data = msgspec.json.encode(self)
            if msgspec.json.decode(data, type=BanditDescriptor) == self:
                return data
        except (TypeError, msgspec.MsgspecError) as error:
            raise InputError(f"dim, window and parameters must be plain numbers and texts; {error}") from None
        raise InputError(f"dim, window and parameters must be plain numbers and texts; got {self.spec!r}")

    def info(self, *, quarantined: bool = False) -> BanditInfo:
        """As the world sees it."""
        spec = self.spec
        return BanditInfo(
            name=self.name,
            dim=spec.dim,
            window=spec.window,
            policy=spec.policy,
            parameters=spec.parameters,
            features=spec.features,
            created_at=datetime.fromtimestamp(self.stamp / 1e6, UTC),
            quarantined=quarantined,
        )

    def new_policy(self) -> LinearPolicy:
        """The policy, as it was before its first round."""
        return make_policy(self.spec, self.seed)


def check_name(name: str) -> str:
    """A name that is safe in a path, a log and a shell."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"name must be 1 to 64 letters, digits, '.', '_' or '-', a letter or digit first; got {short_repr(name)}"
        )
    return name


def check_policy(name: str, asked: BanditSpec) -> LinearPolicy:
    """Make the policy that is asked for; `InputError` where the name or the specification breaks a rule."""
    spec = resolve_spec(asked)
    policy = make_policy(spec, seed=0)
    check_scales(spec.features, spec.dim)
    new_descriptor(0, check_name(name), spec, asked=asked, stamp=0).encoded()
    return policy


def new_descriptor(
    number: int, name: str, spec: BanditSpec, *, asked: BanditSpec, stamp: int, skipped: int = 0
) -> BanditDescriptor:
    """The descriptor of a bandit that has just been asked for."""
    return BanditDescriptor(
        number=number,
        name=name,
        epoch=secrets.token_hex(8),
        spec=spec,
        seed=secrets.randbits(62),
        stamp=stamp,
        skipped=skipped,
        asked=asked,
    )


def resolve_spec(spec: BanditSpec) -> BanditSpec:
    """The policy and the parameters that "recommended" means today: a log must mean the same tomorrow."""
    if spec.policy != DEFAULT_POLICY:
        return spec
    return msgspec.structs.replace(
        spec, policy=recommended.POLICY, parameters={**recommended.PARAMETERS, **spec.parameters}
    )


def refuse_another(descriptor: BanditDescriptor, asked: BanditSpec) -> None:
    """A bandit is what it was created from, in those words or in full: 168h is 7d either way."""
    differences = min(
        (_differences(spec, asked) for spec in (descriptor.asked or descriptor.spec, descriptor.spec)), key=len
    )
    if differences:
        raise ConflictError(
            f"bandit {descriptor.name!r} exists with another specification: {', '.join(differences)}; "
            "ask for the same, delete it, or choose another name"
        )


def _differences(spec: BanditSpec, asked: BanditSpec) -> list[str]:
    """Name each field that differs, with the bandit's value and the one that was asked for."""
    ours, theirs = _values(spec), _values(asked)
    fields = [
        name for name in {**ours, **theirs} if not (name in ours and name in theirs and ours[name] == theirs[name])
    ]
    if _is_same_window(spec.window, asked.window):
        fields = [name for name in fields if name != "window"]
    return [f"{name} is {_shown(ours, name)}, not {_shown(theirs, name)}" for name in fields]


def _values(spec: BanditSpec) -> dict[str, object]:
    """Give the fields of a specification, with those of its parameters and features one by one."""
    return {
        "dim": spec.dim,
        "window": spec.window,
        "policy": spec.policy,
        **{f"parameters.{name}": value for name, value in spec.parameters.items()},
        **{f"features.{name}": scale for name, scale in spec.features.items()},
    }


def _is_same_window(one: int | str, other: int | str) -> bool:
    """Tell whether two windows are as long: 168h is 7d, and 7 rounds are no time."""
    return isinstance(one, int) == isinstance(other, int) and window_of(one) == window_of(other)


def _shown(values: dict[str, object], name: str) -> str:
    return short_repr(values[name]) if name in values else "unset"


def make_policy(spec: BanditSpec, seed: int) -> LinearPolicy:
    """The policy that a resolved specification describes; `InputError` where it describes none."""
    if spec.policy not in policy_names():
        choices = (DEFAULT_POLICY, *policy_names())
        raise InputError(
            f"policy must be one of {', '.join(choices)}; got {short_repr(spec.policy)}{suggest(spec.policy, choices)}"
        )
    made: Any = policy_class(spec.policy)
    known = [name for name in inspect.signature(made).parameters if name not in NOT_PARAMETERS]
    unknown = sorted(set(spec.parameters) - set(known))
    if unknown:
        raise InputError(
            f"parameters of {spec.policy} must be among {', '.join(known)}; got {short_repr(unknown[0])}"
            f"{suggest(unknown[0], known)}"
        )
    for name, value in spec.parameters.items():
        if isinstance(value, bool):
            raise InputError(f"parameters: {name} must be a number or a text; got {value!r}")
    parameters = {"seed": seed, **spec.parameters} if "seed" in known else spec.parameters
    if type(seed_ := parameters.get("seed", 0)) is not int or seed_ < 0:
        raise InputError(
            f"parameters: seed must be a whole number of at least 0; got {short_repr(seed_)}: or leave it out"
        )
    try:
        policy: LinearPolicy = made(spec.dim, window_of(spec.window), **parameters)
    except InputError as error:
        if str(error).partition(" ")[0] in parameters:
            raise InputError(f"parameters: {error}") from None
        raise
    return policy


def warm_up(policy: LinearPolicy) -> None:
    """Have the machine code found or compiled before the first request waits for it."""
    twin = policy.fresh(seed=0)
    unit = np.zeros((2, policy.dim))
    unit[:, 0] = 1.0
    now = np.zeros(2, np.int64)
    twin.decide(unit) if isinstance(twin.window, int) else twin.decide(unit, at=0.0)
    record(twin, unit, np.stack([summarise(unit)] * 2), now)
    convert(twin, np.ones(2, np.int64), np.ones(2), now)
    revoke(twin, 1, 0)
    Payload(b"", twin.dim).records(DECISION)
    twin.theta_hat, twin.width, twin.pending_width  # noqa: B018 - asked for, so that they are compiled
