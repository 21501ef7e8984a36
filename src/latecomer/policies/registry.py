"""Every policy by name, loaded when it is asked for; and a saved one by its file."""

import os
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from latecomer.errors import DamagedFileError

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


def policy_class(name: str) -> type["LinearPolicy"]:
    """The class of that name."""
    found: type[LinearPolicy] = getattr(import_module(POLICIES[name]), name)
    return found


def load(path: str | PathLike[str], *, clock: "Clock | None" = None) -> "LinearPolicy":
    """The policy that was saved at `path`; it continues bit for bit, its generator included.

    Raises `DamagedFileError` or `NewerFileError`; `clock` is as in the policy's constructor, for it is not saved.
    """
    return from_bytes(Path(path).read_bytes(), name=os.fspath(path), clock=clock)


def from_bytes(data: bytes, *, name: str, clock: "Clock | None" = None) -> "LinearPolicy":
    """The policy whose `to_bytes` gave `data`; errors call it `name`."""
    from latecomer.policies.persistence.file_format import unpack  # noqa: PLC0415 - nothing heavy before it is needed

    header, arrays = unpack(data, name)
    if str(header.get("policy")) not in POLICIES:
        raise DamagedFileError(f"{name} holds a policy that this Latecomer does not know: {header.get('policy')!r}")
    try:
        policy = policy_class(header["policy"])(**header["parameters"], clock=clock)
        policy._restore(header["generator"], arrays)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise DamagedFileError(f"{name} does not fit together: {error}; restore it from a copy") from error
    return policy
