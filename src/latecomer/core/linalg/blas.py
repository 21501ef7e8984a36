"""BLAS kept to one thread while a kernel needs it, and set back to the process's own count afterwards.

Numba calls SciPy's BLAS. The functions that read and set its number of threads are looked up by name in
`scipy.linalg.cython_blas`, which the linker follows to the BLAS itself: OpenBLAS under the names that its builds have,
or MKL. A BLAS that has none of them, such as Apple's Accelerate, is left alone.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Lock
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_GET_SET = [
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
]


class _ThreadCount(NamedTuple):
    """Functions that read and set a library's number of threads."""

    get: Callable[[], int]
    set: Callable[[int], object]


@cache
def _thread_count() -> _ThreadCount:
    """Find the functions of the BLAS that Numba calls, which is SciPy's."""
    library = ctypes.CDLL(str(import_module("scipy.linalg.cython_blas").__file__))
    for get, set_ in _GET_SET:
        if hasattr(library, get) and hasattr(library, set_):
            return _ThreadCount(getattr(library, get), getattr(library, set_))
    return _ThreadCount(lambda: 1, lambda _: None)


class _Limit:
    """One thread from the first that enters until the last has left; then the count that the process had before."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before = 1

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = _thread_count().get()
                _thread_count().set(1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                _thread_count().set(self._before)


_limit = _Limit()


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with BLAS kept to one thread while it runs: same numbers, and no contention for cores.

    The setting belongs to the process: where several Python threads do this, the last of them to leave restores it.
    """

    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _limit:
            return function(*args, **kwargs)

    return limited
