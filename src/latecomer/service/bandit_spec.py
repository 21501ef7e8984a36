"""The specification of a bandit, as a client sends it and as the log keeps it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from latecomer.encoding.spec import EncoderSpec, Scale
from latecomer.errors import InputError
from latecomer.validation import short_repr, to_plain_scalar

__all__ = ["DEFAULT_GRACE", "DEFAULT_POLICY", "BanditSpec", "ChallengerSpec", "RewardSpec", "Scale", "ValueUnit"]

DEFAULT_POLICY = "recommended"
"""The policy of a specification that names none: that of `latecomer.recommended` on the day of its creation."""

DEFAULT_RETURNS, DEFAULT_RETURN_WINDOWS = "90d", 10
"""The time for returns of a specification that gives none, where conversions have amounts."""
DEFAULT_GRACE = "1d"
"""The grace of a specification that gives none, where its window is a time."""


class ValueUnit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The unit of values for people: a conversion of value 1 is worth `scale` of it, as in 250 EUR."""

    name: Annotated[str, Meta(min_length=1, max_length=20)]
    scale: Annotated[float, Meta(gt=0.0, le=1e12)] = 1.0


class RewardSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reward of amounts: a decision is worth the `aggregate` of its conversions, and `scale` at most.

    `unit` is the name of their unit in reports, as in EUR.
    """

    scale: Annotated[float, Meta(gt=0.0, le=1e12)]
    aggregate: Literal["first", "sum", "max"] = "sum"
    unit: Annotated[str, Meta(min_length=1, max_length=20)] | None = None


class ChallengerSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A second policy of a bandit, which makes a `share` of the decisions; both learn from all of them."""

    policy: str = DEFAULT_POLICY
    parameters: dict[str, Any] = {}
    share: Annotated[float, Meta(gt=0.0, lt=1.0)] = 0.1


class BanditSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The specification that a bandit is created from.

    `window` is rounds (an int) or a time ("7d", "36h"); `grace`, where the window is a time, how long after it
    conversions that occurred inside it are still credited ("1d" where it is null, "0s" for none); `activation_timeout`,
    in the unit of the window, how long deferred decisions wait to be activated (where it is null, as long as the
    window); `policy` a class of the policy registry, or "recommended"; `parameters` its keyword arguments. Without a
    seed, one is drawn when the bandit is created, and kept. `features` declares the scales of numbers, by name, for
    decisions with features instead of vectors; `encoder`, in its place, is an encoder as `Encoder.to_dict` gives it.
    `log_offers` says whether the log gets the whole offer of each decision, which evaluating another policy needs.
    `unit` is that of values in reports. `attribution` says to which of a subject's decisions in the window a conversion
    of that subject is credited. `reward` says what conversions are worth: "binary", values in [0, 1] of which the first
    counts, or amounts. `returns`, in the unit of the window, is how long after it they can be taken back (where it is
    null, "90d" or ten windows if there are amounts, and else as long as the grace). `challenger` is a second policy,
    which makes a share of the decisions and is compared with the first.
    """

    dim: int
    window: int | str
    policy: str = DEFAULT_POLICY
    parameters: dict[str, Any] = {}
    features: dict[str, Scale] = {}
    encoder: EncoderSpec | None = None
    log_offers: bool = True
    unit: ValueUnit | None = None
    grace: str | None = None
    activation_timeout: int | str | None = None
    attribution: Literal["last", "first", "all"] = "last"
    reward: Literal["binary"] | RewardSpec = "binary"
    returns: int | str | None = None
    challenger: ChallengerSpec | None = None

    @property
    def resolved_returns(self) -> int | str | None:
        """The time for returns that it stands for."""
        if self.returns is not None or isinstance(self.reward, str):
            return self.returns
        return DEFAULT_RETURNS if isinstance(self.window, str) else DEFAULT_RETURN_WINDOWS * self.window

    @property
    def resolved_unit(self) -> ValueUnit | None:
        """The unit that it stands for: that of its reward, where that has amounts."""
        if isinstance(self.reward, str) or self.unit is not None:
            return self.unit
        return ValueUnit(name=self.reward.unit or "units", scale=self.reward.scale)

    @property
    def resolved_grace(self) -> str | None:
        """The grace that it stands for; None where the window is in rounds."""
        return DEFAULT_GRACE if self.grace is None and isinstance(self.window, str) else self.grace


def parse_reward_spec(given: RewardSpec | Mapping[str, Any] | str | None) -> Literal["binary"] | RewardSpec:
    """Return a reward that may be given as a dict; `InputError` where it is none.

    >>> parse_reward_spec({"scale": 200, "unit": "EUR"})
    RewardSpec(scale=200.0, aggregate='sum', unit='EUR')
    """
    if given is None or given == "binary":
        return "binary"
    form = '"binary", or as {"scale": 200, "unit": "EUR", "aggregate": "sum"}'
    return _convert(given, RewardSpec, field="reward", form=form)


def parse_unit(given: ValueUnit | Mapping[str, Any] | None) -> ValueUnit | None:
    """Return a unit that may be given as a dict; `InputError` where it is none.

    >>> parse_unit({"name": "EUR", "scale": 250})
    ValueUnit(name='EUR', scale=250.0)
    """
    if given is None:
        return None
    return _convert(given, ValueUnit, field="unit", form='as {"name": "EUR", "scale": 250}')


def parse_challenger(given: ChallengerSpec | Mapping[str, Any] | None) -> ChallengerSpec | None:
    """Return a challenger that may be given as a dict; `InputError` where it is none.

    >>> parse_challenger({"policy": "LinUCB", "share": 0.2})
    ChallengerSpec(policy='LinUCB', parameters={}, share=0.2)
    """
    if given is None:
        return None
    form = 'as {"policy": "LinUCB", "parameters": {}, "share": 0.1}'
    return _convert(given, ChallengerSpec, field="challenger", form=form)


def to_plain(given: Any) -> Any:
    """Return numbers, texts, lists and dicts as Python's own, which a log can keep; `InputError` where it is none."""
    try:
        return msgspec.to_builtins(given, enc_hook=to_plain_scalar, builtin_types=(timedelta,))
    except (TypeError, ValueError) as error:
        raise InputError(f"dim, window and parameters must be plain numbers and texts; {error}") from None


_Part = TypeVar("_Part")


def _convert(given: object, kind: type[_Part], *, field: str, form: str) -> _Part:
    """Return a part of a specification, given as itself or as a dict."""
    try:
        return msgspec.convert(msgspec.to_builtins(given, enc_hook=to_plain_scalar), kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise InputError(f"{field} must be {form}: {error}; got {short_repr(given)}", field=field) from None
