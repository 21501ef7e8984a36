"""A policy without the actions of the rounds that it holds, for snapshots beside a log that has the actions.

The held rounds' actions are most of a policy. A snapshot has the statistics, and of each such round 16 bytes or more:
norm, credit, the arrival of the conversion where the algorithm needs it, and the algorithm's own numbers. Where rounds
were recorded with the action 0, since the policy was frozen, it says which: a log has the actions that were chosen.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from latecomer.core.ring import spanned_blocks
from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Integers, new_ring
from latecomer.errors import DamagedFileError, InputError
from latecomer.policies.base.bulk import read_held
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.persistence.file_format import pack, unpack
from latecomer.policies.registry import policy_class


def _open_fields(policy: LinearPolicy) -> tuple[str, ...]:
    """Name the fields of an open round that a log does not have."""
    arrival = ("arrival",) if policy.algorithm.needs_arrival_times else ()
    return ("norm", "credit", *arrival, *policy.algorithm.round_fields)


_BLANK = "open/blank"


def _find_blanks(policy: LinearPolicy) -> dict[str, npt.NDArray[Any]]:
    """Return which held rounds have the action 0, where any has."""
    state = policy.state
    return {_BLANK: read_held(policy, "action") == 0.0} if state.number("last_frozen") >= state.number("kept") else {}


class PolicySnapshot(Struct, frozen=True, kw_only=True):
    """A policy at one moment, but for the actions and stamps of rounds `kept` to `rounds`.

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
        """Copy the parts of a policy that a snapshot has; the policy may go on."""
        record = policy.state.record.copy()
        return cls(
            name="a policy",
            policy=type(policy).__name__,
            parameters=policy.parameters,
            generator=policy.rng.state(),
            arrays={
                **{f"state/{name}": record[name] for name in policy.state.saved_fields()},
                **{f"open/{name}": read_held(policy, name) for name in _open_fields(policy)},
                **_find_blanks(policy),
                **policy.table_arrays(),
            },
        )

    def to_bytes(self) -> bytes:
        """Return the snapshot in the format of a saved policy, with other arrays."""
        return pack(policy=self.policy, parameters=self.parameters, generator=self.generator, arrays=self.arrays)

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str) -> "PolicySnapshot":
        """Read a snapshot that `to_bytes` wrote; errors call it `name`."""
        header, arrays = unpack(data, name)
        try:
            return cls(
                name=name,
                policy=header["policy"],
                parameters=header["parameters"],
                generator=header["generator"],
                arrays={entry: arrays[entry] for entry in (*arrays, "open/norm", "open/credit")},
            )
        except KeyError as error:
            raise DamagedFileError(f"{name} does not fit together: {error} is missing") from error

    @property
    def kept(self) -> int:
        """The first round whose action is needed."""
        return int(self.arrays["state/kept"].item())

    @property
    def rounds(self) -> int:
        """The last round whose action is needed."""
        return int(self.arrays["state/rounds"].item())

    def restore(self, actions: Array, stamps: Integers) -> LinearPolicy:
        """Make the whole policy, given an action and a stamp for each round that it holds, oldest first."""
        held = self.rounds - self.kept + 1
        if actions.shape[:1] != (held,) or stamps.shape != (held,):
            raise InputError(f"actions and stamps must be of {held} rounds; got {actions.shape} and {stamps.shape}")
        first = (self.kept - 1) % ROUNDS_PER_BLOCK  # a round's lane follows from its number
        arrays = {**self.arrays, "state/head": first + self.arrays["state/oldest"] - self.kept}
        if (blank := arrays.pop(_BLANK, None)) is not None:
            actions = np.where(blank[:, None], 0.0, actions)
        try:
            policy: LinearPolicy = policy_class(self.policy)(**self.parameters)
            ring = new_ring(policy.state.ring.dtype, spanned_blocks(first, held + 1))
            kept = {name: arrays.pop(f"open/{name}") for name in _open_fields(policy)}
            for name, values in {"arrival": np.zeros(held, np.int64), **kept, "stamp": stamps}.items():
                arrays[f"ring/{name}"] = _in_blocks(values, ring[name].dtype, first, len(ring))
            arrays["ring/action"] = _in_blocks(actions, ring["action"].dtype, first, len(ring)).transpose(0, 2, 1)
            policy.restore(self.generator, arrays)
        except (KeyError, ValueError, TypeError, AttributeError) as error:
            raise DamagedFileError(f"{self.name} does not fit together: {error}; restore it from a copy") from error
        return policy


def _in_blocks(values: npt.NDArray[Any], dtype: np.dtype[Any], first: int, blocks: int) -> npt.NDArray[Any]:
    """Lay values out as a ring's blocks have them, beginning at lane `first`."""
    lanes = np.zeros((blocks * ROUNDS_PER_BLOCK, *values.shape[1:]), dtype)
    lanes[first : first + len(values)] = values
    return lanes.reshape(blocks, ROUNDS_PER_BLOCK, *values.shape[1:])
