"""Declarations of kernels: plain functions of arrays and numbers, which run as they are or as machine code.

A declared function stays a Python function, and calls of it run as such. `latecomer.tiers` makes machine code of the
same source with Numba, on request. Strict IEEE arithmetic (no fast-math) makes both agree to the last bit, so that a
policy may change from one to the other between two decisions. Nothing is imported here, so that a first decision waits
for no compiler.

For the bits to agree, a kernel keeps to float64 and int64, to sums in a fixed order, and to `math.sqrt`, `log`,
`log1p`, `exp` and `cos`, which are the C library's in both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Declaration:
    """A kernel as it was declared: the source to compile, and how."""

    source: Callable[..., Any]
    is_separate: bool = False
    """Compiled as a function of its own, not as a part of its callers."""
    holds_gil: bool = False
    """As an entry point it keeps Python's lock."""


@dataclass(frozen=True, eq=False)
class HookDeclaration:
    """A function that stands for the algorithm's own function of that name."""

    name: str
    default: Callable[..., Any] | None = None
    """The function where the algorithm has None."""

    def find(self, algorithm: Any) -> Any:
        """Return the algorithm's function."""
        return getattr(algorithm, self.name) or self.default


_declared: dict[Callable[..., Any], Declaration | HookDeclaration] = {}


def find_declaration(function: Callable[..., Any]) -> Declaration | HookDeclaration | None:
    """Return the declaration of a function, None where it is plain: then it is compiled as a part of its callers."""
    return _declared.get(function)


def kernel(function: Kernel) -> Kernel:
    """Declare a kernel. It becomes a part of its callers; as an entry point it runs without Python's lock."""
    _declared[function] = Declaration(function)
    return function


def kernel_noinline(function: Kernel) -> Kernel:
    """Declare a kernel that is compiled by itself: a long one that is called from several places."""
    _declared[function] = Declaration(function, is_separate=True)
    return function


def kernel_holding_gil(function: Kernel) -> Kernel:
    """Declare a kernel that keeps Python's lock: for work shorter than releasing it and taking it back."""
    _declared[function] = Declaration(function, holds_gil=True)
    return function


def vectorised(interpreted: Kernel) -> Callable[[Kernel], Kernel]:
    """Declare a loop that is compiled, and the NumPy form of it that runs where it is not.

    Both must do the same operations in the same order for every element; tests/tiers/test_tiers_agree.py compares them.
    """

    def declare(loop: Kernel) -> Kernel:
        _declared[interpreted] = Declaration(loop)
        interpreted.__doc__ = loop.__doc__
        interpreted.__name__ = loop.__name__
        return interpreted

    return declare


def hook(name: str, *, default: Callable[..., Any] | None = None) -> Callable[[Kernel], Kernel]:
    """Declare a function that stands for the function `name` of the state's algorithm."""

    def declare(function: Kernel) -> Kernel:
        _declared[function] = HookDeclaration(name, default)
        return function

    return declare


class ExternalFunction:
    """A function that exists outside of kernels, which they call by a symbol: a routine of BLAS, or Python's own.

    Parameters
    ----------
    symbol
        The name in machine code.
    signature
        The types of the result and the arguments: "void", "double", "int64" or "pointer".
    find
        Returns the function as a `ctypes` one; called once, when it is needed.
    """

    def __init__(self, symbol: str, signature: tuple[str, ...], find: Callable[[], Any]) -> None:
        self.symbol, self.signature, self._find = symbol, signature, find
        self._function: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Call it from plain Python."""
        return self.function(*arguments)

    @property
    def function(self) -> Any:
        """The `ctypes` function."""
        if self._function is None:
            self._function = self._find()
        return cast(Any, self._function)
