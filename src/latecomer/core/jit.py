"""How every kernel is compiled: one place, so that all of them agree.

Strict IEEE arithmetic (no fast-math): the same formula gives the same bits wherever it is inlined, so that `decide`,
`decide_many` and the simulator agree to the last bit. Kernels are inlined into their callers, so that the dimension, a
constant of the state's type, stays one all the way down.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_ALL: dict[str, Any] = {"cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""Nobody calls a kernel through a C pointer, and the code for it takes an eighth of the time to compile."""


def kernel(function: Kernel) -> Kernel:
    """Compile on first call, for each dimension anew, and keep the machine code on disk; runs without Python's lock."""
    compile_ = numba.njit(nogil=True, forceinline=True, **_ALL)
    return cast(Kernel, compile_(function))


def kernel_noinline(function: Kernel) -> Kernel:
    """The same, but called rather than inlined: for long kernels whose arguments' types carry the dimension anyway.

    Inlined into every entry point, and optimised with each anew, they would take most of the time to compile.
    """
    compile_ = numba.njit(nogil=True, **_ALL)
    return cast(Kernel, compile_(function))


def kernel_holding_gil(function: Kernel) -> Kernel:
    """The same for work that is over before Python's lock would have been given away and taken back."""
    compile_ = numba.njit(nogil=False, forceinline=True, **_ALL)
    return cast(Kernel, compile_(function))


def kernel_ir_inlined(function: Kernel) -> Kernel:
    """A part of its callers, and compiled with each of them alone: for what two entry points have in common."""
    compile_ = numba.njit(inline="always", **_ALL)
    return cast(Kernel, compile_(function))


def entry_point(function: Kernel, *examples: object) -> Kernel:
    """The machine code of a kernel for arguments of the examples' types.

    It saves the half microsecond in which Numba looks the types up at every call; the caller answers for the types.
    """
    types = tuple(numba.typeof(example) for example in examples)  # type: ignore[no-untyped-call]
    return cast(Kernel, cast(Any, function).compile(types))
