"""Decorators that compile kernels, so that all of them are compiled alike.

Strict IEEE arithmetic (no fast-math): the same formula gives the same bits wherever it is inlined, so that `decide`,
`decide_many` and the simulator agree to the last bit. Kernels are inlined into their callers, so that the dimension, a
constant of the state's type, stays one all the way down.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

_ALL: dict[str, Any] = {"cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""No kernel is called through a C pointer, and the code for it would take an eighth of the time to compile."""


def kernel(function: Kernel) -> Kernel:
    """Compile on first call, for each dimension, and cache the machine code on disk; it runs without Python's lock."""
    compile_ = numba.njit(nogil=True, forceinline=True, **_ALL)
    return cast(Kernel, compile_(function))


def kernel_noinline(function: Kernel) -> Kernel:
    """Compile a kernel that is called, not inlined: a long one whose arguments' types carry the dimension anyway.

    Inlined into every entry point and optimised with each, such kernels would take most of the time to compile.
    """
    compile_ = numba.njit(nogil=True, **_ALL)
    return cast(Kernel, compile_(function))


def kernel_holding_gil(function: Kernel) -> Kernel:
    """Compile a kernel that keeps Python's lock: for work shorter than releasing it and taking it back."""
    compile_ = numba.njit(nogil=False, forceinline=True, **_ALL)
    return cast(Kernel, compile_(function))


def kernel_ir_inlined(function: Kernel) -> Kernel:
    """Make a kernel a part of its callers, never compiled by itself: for code that entry points share."""
    compile_ = numba.njit(inline="always", **_ALL)
    return cast(Kernel, compile_(function))


def entry_point(function: Kernel, *examples: object) -> Kernel:
    """Return the machine code of a kernel for arguments of the examples' types.

    A call of it saves the half microsecond in which Numba looks the types up. The caller must pass those types.
    """
    types = tuple(numba.typeof(example) for example in examples)  # type: ignore[no-untyped-call]
    return cast(Kernel, cast(Any, function).compile(types))
