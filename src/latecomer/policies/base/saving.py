"""Files of policies, and the encoder that goes with a policy."""

from datetime import timedelta
from os import PathLike
from typing import Any

import numpy.typing as npt

from latecomer.encoding.encoder import Encoder, check_encoder
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.baskets import BasketTable
from latecomer.policies.base.compiled_state import CompiledState
from latecomer.policies.base.deferral import DeferredTable
from latecomer.policies.base.rng import PolicyRng
from latecomer.policies.base.subjects import SubjectTable
from latecomer.policies.persistence.file_format import pack, write
from latecomer.policies.registry import check_registered


class SavedPolicy:
    """A policy that can be written to one file; `latecomer.load` reads it."""

    rng: PolicyRng
    state: CompiledState
    deferred: DeferredTable
    subjects: SubjectTable
    baskets: BasketTable
    algorithm: Algorithm
    encoder: Encoder | None = None
    """The encoder that the policy was saved with."""
    _dim: int
    _window: int | timedelta
    _parameters: dict[str, Any]

    @property
    def oldest_correctable(self) -> int:
        """The oldest stamp that a correction of now may have."""
        raise NotImplementedError  # a policy that credits has it

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make a policy of the same parameters; seed and clock are not among them."""
        return {"dim": self._dim, "window": self._window, **self._parameters}

    def save(self, path: str | PathLike[str], *, encoder: Encoder | None = None) -> None:
        """Write everything to one file, atomically; `latecomer.load` continues from it bit for bit.

        `encoder`, where it is given, becomes the policy's own: it is in the file, and a loaded policy has it.
        """
        if encoder is not None:
            self.encoder = check_encoder(encoder, self.parameters["dim"])
        write(path, self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the contents of the file that `save` writes."""
        check_registered(type(self))  # type: ignore[arg-type]
        return pack(
            policy=type(self).__name__,
            parameters=self.parameters,
            generator=self.rng.state(),
            arrays={**self.state.arrays(), **self.table_arrays()},
            encoder=self.encoder,
        )

    def table_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return deferred decisions, subjects and baskets by name."""
        return {
            **self.deferred.arrays(),
            **self.subjects.arrays(self.state.number("kept")),
            **self.baskets.arrays(self.oldest_correctable),
        }

    def restore(self, generator: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Become the policy that was saved; `latecomer.load` calls it."""
        self.rng.restore(generator)
        self.state.restore(arrays)
        self.deferred.restore(arrays)
        self.subjects.restore(arrays)
        self.baskets.restore(arrays, self._dim, len(self.algorithm.round_fields))
