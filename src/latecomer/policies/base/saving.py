"""Files of policies, the encoder that goes with a policy, and policies that begin anew."""

from copy import copy
from datetime import timedelta
from os import PathLike
from typing import Any, Self

import numpy.typing as npt

from latecomer.encoding.encoder import Encoder, check_encoder
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.baskets import BasketTable
from latecomer.policies.base.compiled_state import CompiledState
from latecomer.policies.base.deferral import DeferredTable
from latecomer.policies.base.rng import PolicyRng, Seed
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
    _takes_draws: bool
    _is_randomised: bool

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value!r}" for name, value in self._parameters.items())
        what, rounds = f"{type(self).__name__}(dim={self._dim}", self.state.number("rounds")
        return f"<{what}, window={self._window!r}{parameters}) after {rounds} rounds>"

    def fresh(self, seed: Seed = None) -> Self:
        """Make a policy of the same parameters that has seen nothing, with a generator of its own."""
        twin = copy(self)
        twin.state = self.state.make_empty()
        twin.rng, twin._assessor = self._make_rng(seed), None  # type: ignore[attr-defined]
        twin.deferred, twin.subjects = DeferredTable(self._dim, self.deferred.timeout), SubjectTable()
        twin.baskets = BasketTable()
        return twin

    def _make_rng(self, seed: Seed) -> PolicyRng:
        """Make a generator; that of a policy which draws nothing is always the same."""
        return PolicyRng(self.algorithm.draw, seed if self._takes_draws else 0, spare=int(self._is_randomised))

    @property
    def oldest_correctable(self) -> int:
        """The oldest stamp that a correction of now may have."""
        raise NotImplementedError  # a policy that credits has it

    def is_correctable(self, round_: int) -> bool:
        """Tell whether the credit of a round may still change."""
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
        """Return deferred decisions, subjects, baskets and stages by name."""
        surrogates = self.state.surrogates
        return {
            **self.deferred.arrays(),
            **self.subjects.arrays(self.state.number("kept")),
            **self.baskets.arrays(self.oldest_correctable),
            **({} if surrogates is None else surrogates.arrays(self.is_correctable)),
        }

    def restore(self, generator: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Become the policy that was saved; `latecomer.load` calls it."""
        self.rng.restore(generator)
        self.state.restore(arrays)
        self.restore_tables(arrays)

    def restore_tables(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take deferred decisions, subjects, baskets and stages from `table_arrays`."""
        self.deferred.restore(arrays)
        self.subjects.restore(arrays)
        self.baskets.restore(arrays, self._dim, len(self.algorithm.round_fields))
        if self.state.surrogates is not None:
            first, last = (int(self.state.number(name)) for name in ("oldest", "rounds"))
            self.state.surrogates.restore(arrays, range(first, last + 1))
