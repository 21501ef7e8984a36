"""Every policy by name, imported on first use; policies from outside the package; and saved policies.

A name here is a name of `latecomer`, of saved files, of the service's specifications, of experiment files and of the
arena, and the tests demand its test case and its documentation.
"""

import os
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from latecomer.errors import DamagedFileError, InputError

if TYPE_CHECKING:
    from latecomer.policies.base.clock import Clock
    from latecomer.policies.base.policy import LinearPolicy

POLICIES = {
    "OTFLinUCB": "latecomer.policies.otf_lin_ucb",
    "OTFLinTS": "latecomer.policies.otf_lin_ts",
    "MaturedLinTS": "latecomer.policies.matured_lin_ts",
    "MaturedLinUCB": "latecomer.policies.matured_lin_ucb",
    "WaitingLinUCB": "latecomer.policies.waiting_lin_ucb",
    "WaitingLinTS": "latecomer.policies.waiting_lin_ts",
    "ImputedLinTS": "latecomer.policies.imputed_lin_ts",
    "LogisticLinTS": "latecomer.policies.logistic_lin_ts",
    "LinUCB": "latecomer.policies.lin_ucb",
    "LinTS": "latecomer.policies.lin_ts",
    "Greedy": "latecomer.policies.greedy",
    "Uniform": "latecomer.policies.uniform",
}
"""The package's own, with the module of each."""

_registered: dict[str, type["LinearPolicy"]] = {}

PolicyClass = TypeVar("PolicyClass", bound=type["LinearPolicy"])


def register(policy: PolicyClass) -> PolicyClass:
    """Make a policy class known by its name to `load`, to the service and to experiment files; return it.

    It can stand as a decorator. A class that is imported again takes the place of the earlier one.
    """
    from latecomer.policies.base.policy import LinearPolicy  # noqa: PLC0415 - nothing heavy before it is needed

    if not (isinstance(policy, type) and issubclass(policy, LinearPolicy) and hasattr(policy, "algorithm")):
        raise InputError(f"register takes a subclass of LinearPolicy that has an algorithm; got {policy!r}")
    if policy.__name__ in POLICIES:
        raise InputError(f"the name of a policy must be new; got {policy.__name__}, which latecomer has: rename yours")
    _registered[policy.__name__] = policy
    return policy


def policy_names() -> tuple[str, ...]:
    """Name every policy: the package's own, then the registered ones."""
    return (*POLICIES, *_registered)


def policy_class(name: str) -> type["LinearPolicy"]:
    """Return the class of that name; `KeyError` where there is none."""
    if name in _registered:
        return _registered[name]
    found: type[LinearPolicy] = getattr(import_module(POLICIES[name]), name)
    return found


def check_registered(policy: type["LinearPolicy"]) -> None:
    """Refuse to save a policy that `load` would not find."""
    if policy.__name__ not in policy_names() or policy_class(policy.__name__) is not policy:
        raise InputError(
            f"save is for the policies that load knows, {', '.join(policy_names())}; got {policy.__name__}: "
            "register it (latecomer.policies.registry.register)"
        )


def load(path: str | PathLike[str], *, clock: "Clock | None" = None) -> "LinearPolicy":
    """Return the policy that was saved at `path`; it continues bit for bit, its generator included.

    Raises `InputError` where there is no file, `DamagedFileError` or `NewerFileError`; `clock` is as in the policy's
    constructor, for it is not saved. A policy from outside the package must have been registered.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"path must be that of a saved policy; got '{os.fspath(path)}' ({error.strerror}): check the path",
            field="path",
        ) from None
    return from_bytes(data, name=os.fspath(path), clock=clock)


def from_bytes(data: bytes, *, name: str, clock: "Clock | None" = None) -> "LinearPolicy":
    """Return the policy whose `to_bytes` gave `data`; errors call it `name`."""
    from latecomer.encoding.encoder import Encoder, check_encoder  # noqa: PLC0415 - nothing heavy before it is needed
    from latecomer.policies.persistence.file_format import unpack  # noqa: PLC0415

    header, arrays = unpack(data, name)
    if str(header.get("policy")) not in policy_names():
        raise DamagedFileError(f"{name} holds a policy that this Latecomer does not know: {header.get('policy')!r}")
    try:
        policy = policy_class(header["policy"])(**header["parameters"], clock=clock)
        policy.restore(header["generator"], arrays)
        if "encoder" in header:
            policy.encoder = check_encoder(Encoder.from_dict(header["encoder"]), policy.dim)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise DamagedFileError(f"{name} does not fit together: {error}; restore it from a copy") from error
    return policy
