"""The interface of a delay law, and the base of the built-in ones.

A law of your own is any object with `sample`, `cdf` and `mean`; it need not inherit from anything:

>>> import numpy as np
>>> from latecomer.delays import DelayLaw, Mixture, Never
>>> class WithinTen:
...     '''Every delay from 0 to 9 rounds, equally likely.'''
...     mean = 4.5
...     def sample(self, rng, size):
...         return rng.integers(0, 10, size)
...     def cdf(self, k):
...         return np.clip((np.floor(k) + 1) / 10, 0, 1)
>>> isinstance(WithinTen(), DelayLaw)
True

It goes wherever a built-in one goes:

>>> law = Mixture([WithinTen(), Never()], weights=[0.8, 0.2])
>>> law.cdf(4)
0.4
>>> law.mean
inf
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, Protocol, TypeGuard, overload, runtime_checkable

import numpy as np
import numpy.typing as npt

from latecomer.errors import InputError
from latecomer.validation import check_call, check_integer

Delays = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NEVER: Final = 2**62
"""The delay of a conversion that never comes: longer than any window, and a sum with a round still fits in 64 bits."""


@runtime_checkable
class DelayLaw(Protocol):
    """The law of a delay D in whole rounds, D >= 0."""

    @property
    def mean(self) -> float:
        """E[D]; infinite where D may be never, or has a heavy enough tail."""

    def sample(self, rng: np.random.Generator, size: int) -> Delays:
        """Draw independent delays; `NEVER` stands for never."""

    def cdf(self, k: Any) -> Any:
        """P(D <= k) for a number or an array; τ_m is `cdf(m)`."""


class Law(ABC):
    """Base of the built-in laws: it checks arguments, and takes a number or an array."""

    draws_one_by_one: ClassVar[bool] = False
    """sample(m + n) draws the same as sample(m) and then sample(n)."""

    @abstractmethod
    def _sample(self, rng: np.random.Generator, size: int) -> Delays:
        """Draw `size` delays; the arguments are checked."""

    @abstractmethod
    def _cdf(self, k: Floats) -> Floats:
        """Return P(D <= k) of whole numbers of at least 0."""

    def sample(self, rng: np.random.Generator, size: int) -> Delays:
        """Draw independent delays in whole rounds; `NEVER` stands for never."""
        if not isinstance(rng, np.random.Generator):
            raise InputError(
                f"rng must be a NumPy generator; got {rng!r}: numpy.random.default_rng(0) makes one", field="rng"
            )
        return self._sample(rng, check_integer("size", size, least=0))

    @overload
    def cdf(self, k: float) -> float: ...
    @overload
    def cdf(self, k: npt.NDArray[Any] | list[int] | list[float]) -> Floats: ...
    def cdf(self, k: npt.ArrayLike) -> float | Floats:
        """P(D <= k), of a number or an array; τ_m is `cdf(m)`."""
        rounds = np.asarray(k)
        if rounds.dtype.kind not in "fiu" or np.isnan(rounds).any():
            raise InputError(f"k must be a number of rounds, or an array of them; got {k!r}", field="k")
        rounds = np.floor(rounds.astype(np.float64))
        shares = np.where(rounds < 0.0, 0.0, self._cdf(np.maximum(rounds, 0.0))) + 0.0  # no −0
        return shares if shares.ndim else float(shares)


class ChangingLaw(Protocol):
    """A law that is not the same in every round."""

    def sample_from(self, rng: np.random.Generator, first: int, size: int) -> Delays:
        """The delays of rounds first, first + 1, …, counted from 0."""


def is_changing(law: object) -> TypeGuard[ChangingLaw]:
    """Tell whether a law has `sample_from`; `isinstance` with a protocol takes as long as the draws."""
    return hasattr(law, "sample_from")


def is_sequential(law: object) -> bool:
    """Tell whether any number of delays may be drawn at once, and a longer draw has the same beginning."""
    return isinstance(law, Law) and type(law).sample is Law.sample and law.draws_one_by_one


def draw(law: DelayLaw, rng: np.random.Generator, size: int, first: int = 0) -> Delays:
    """Draw the delays of rounds first, first + 1, … from any law, checked to be whole numbers from 0 to `NEVER`."""
    try:
        delays = np.asarray(law.sample_from(rng, first, size) if is_changing(law) else law.sample(rng, size))
    except TypeError:
        called = ("sample_from", "rng", "first") if is_changing(law) else ("sample", "rng")
        check_call(law, *called, "size")
        raise
    if delays.shape != (size,) or delays.dtype.kind not in "iu":
        raise InputError(
            f"sample of {law!r} must return {size} whole numbers of rounds; got shape {delays.shape}, "
            f"dtype {delays.dtype}: floor the delays and convert them with .astype(numpy.int64)"
        )
    if size and delays.min() < 0:
        raise InputError(f"sample of {law!r} must return delays of at least 0; got {delays.min()}")
    if size and delays.max() > NEVER:
        delays = np.minimum(delays, NEVER)
    return delays.astype(np.int64, copy=False)
