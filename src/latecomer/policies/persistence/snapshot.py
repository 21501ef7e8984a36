"""A policy without the actions of its open rounds: what a snapshot keeps where a log keeps the actions.

The open rounds' actions are most of a policy, and where they are in a log anyway, a snapshot need not hold them twice:
it has the statistics, and of each open round 16 or 24 bytes: norm, credit, and when that came where it matters.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from latecomer.core.ring import spanned_blocks
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Integers, new_ring
from latecomer.errors import DamagedFileError, InputError
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.persistence.file_format import pack, unpack
from latecomer.policies.registry import policy_class


def _kept(fields: Iterable[str]) -> tuple[str, ...]:
    """What is needed of an open round; when its conversion came, only where the policy follows delays."""
    return ("norm", "credit", "arrival") if any(field.endswith("edges") for field in fields) else ("norm", "credit")


class PolicySnapshot(Struct, frozen=True, kw_only=True):
    """A policy at one moment, but for the actions and stamps of rounds `oldest` to `rounds`.

    Examples
    --------
    >>> import numpy as np, latecomer as lc
    >>> policy = lc.OTFLinTS(dim=2, window=100, seed=0)
    >>> chosen = np.array([policy.decide(np.eye(2)).action for _ in range(9)])
    >>> snapshot = PolicySnapshot.from_bytes(PolicySnapshot.capture(policy).to_bytes(), name="mine")
    >>> again = snapshot.restore(chosen, np.arange(1, 10))
    >>> again.decide(np.eye(2)).score == policy.decide(np.eye(2)).score
    True
    """

    name: str
    policy: str
    parameters: dict[str, Any]
    generator: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]

    @classmethod
    def capture(cls, policy: LinearPolicy) -> "PolicySnapshot":
        """What is needed of a policy, copied: it may go on."""
        memory = policy._memory
        state, ring = memory.state.copy(), memory.ring
        head, held = state["head"].item(), state["rounds"].item() - state["oldest"].item() + 1
        blocks = (head // ROUNDS_PER_BLOCK + np.arange(spanned_blocks(head, held))) % len(ring)
        first, kept = head % ROUNDS_PER_BLOCK, _kept(memory._fields())
        return cls(
            name="a policy",
            policy=type(policy).__name__,
            parameters={"dim": policy.dim, "window": policy.window, **policy._parameters},
            generator=policy._randomness.state(),
            arrays={
                **{f"state/{name}": state[name] for name in memory._fields()},
                **{f"open/{name}": ring[name][blocks].ravel()[first : first + held] for name in kept},
            },
        )

    def to_bytes(self) -> bytes:
        """As a saved policy is written, with other arrays."""
        return pack(policy=self.policy, parameters=self.parameters, generator=self.generator, arrays=self.arrays)

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str) -> "PolicySnapshot":
        """What `to_bytes` gave; errors call it `name`."""
        header, arrays = unpack(data, name)
        try:
            return cls(
                name=name,
                policy=header["policy"],
                parameters=header["parameters"],
                generator=header["generator"],
                arrays={entry: arrays[entry] for entry in (*arrays, *(f"open/{kept}" for kept in _kept(arrays)))},
            )
        except KeyError as error:
            raise DamagedFileError(f"{name} does not fit together: {error} is missing") from error

    @property
    def oldest(self) -> int:
        """The first round whose action is needed."""
        return int(self.arrays["state/oldest"].item())

    @property
    def rounds(self) -> int:
        """The last one."""
        return int(self.arrays["state/rounds"].item())

    def restore(self, actions: Array, stamps: Integers) -> LinearPolicy:
        """The whole policy, given an action and a stamp for each open round, oldest first."""
        held = self.rounds - self.oldest + 1
        if actions.shape[:1] != (held,) or stamps.shape != (held,):
            raise InputError(f"actions and stamps must be of {held} rounds; got {actions.shape} and {stamps.shape}")
        first = (self.oldest - 1) % ROUNDS_PER_BLOCK  # a round's lane follows from its number
        ring = new_ring(actions.shape[1], spanned_blocks(first, held + 1))
        arrays = {**self.arrays, "state/head": np.array([first])}
        kept = {name: arrays.pop(f"open/{name}") for name in _kept(self.arrays)}
        for name, values in {"arrival": np.zeros(held, np.int64), **kept, "stamp": stamps}.items():
            arrays[f"ring/{name}"] = _in_blocks(values, ring[name].dtype, first, len(ring))
        arrays["ring/action"] = _in_blocks(actions, ring["action"].dtype, first, len(ring)).transpose(0, 2, 1)
        try:
            policy: LinearPolicy = policy_class(self.policy)(**self.parameters)
            policy._restore(self.generator, arrays)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise DamagedFileError(f"{self.name} does not fit together: {error}; restore it from a copy") from error
        return policy


def _in_blocks(values: npt.NDArray[Any], dtype: np.dtype[Any], first: int, blocks: int) -> npt.NDArray[Any]:
    lanes = np.zeros((blocks * ROUNDS_PER_BLOCK, *values.shape[1:]), dtype)
    lanes[first : first + len(values)] = values
    return lanes.reshape(blocks, ROUNDS_PER_BLOCK, *values.shape[1:])
