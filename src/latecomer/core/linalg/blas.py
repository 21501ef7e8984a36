"""SciPy's BLAS: its routines by address, and one thread while a kernel needs it.

Routines and the functions that read and set the number of threads are looked up by name in the file of
`scipy.linalg.cython_blas`, which the linker follows to the BLAS itself: OpenBLAS under the names that its builds have,
or MKL. The module is not imported, for it takes a quarter of a second. A BLAS that cannot set its threads, such as
Apple's Accelerate, is left alone.
"""

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from threading import Lock
from typing import Any, NamedTuple, ParamSpec, TypeVar

from latecomer.core.jit import ExternalFunction

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
def _library() -> ctypes.CDLL:
    """Open the file of `scipy.linalg.cython_blas`, and with it the BLAS."""
    for folder in getattr(find_spec("scipy"), "submodule_search_locations", None) or ():
        for suffix in EXTENSION_SUFFIXES:
            with suppress(OSError):
                return ctypes.CDLL(f"{folder}/linalg/cython_blas{suffix}")
    return ctypes.CDLL(str(import_module("scipy.linalg.cython_blas").__file__))


def _find_routine(name: str) -> Any:
    """Return a routine of the BLAS: by its name in Fortran, or by its address in Cython's module."""
    for symbol in (f"scipy_{name}_", f"{name}_"):
        if hasattr(_library(), symbol):
            routine = getattr(_library(), symbol)
            routine.restype = None
            return routine
    capsule = import_module("scipy.linalg.cython_blas").__pyx_capi__[name]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = get_name(capsule)
    if b"int64" in signature:
        raise RuntimeError("SciPy's BLAS must count in 32 bits, as its wheels do; this build counts in 64")
    return ctypes.CFUNCTYPE(None)(get_pointer(capsule, signature))


def blas_routine(name: str, *, arguments: int) -> ExternalFunction:
    """Declare a routine of BLAS, for kernels; its arguments are pointers, as in Fortran."""
    return ExternalFunction(f"latecomer_{name}", ("void", *["pointer"] * arguments), lambda: _find_routine(name))


@cache
def _thread_count() -> _ThreadCount:
    """Find the functions of SciPy's BLAS; they keep Python's lock: to have it back would take longer than they do."""
    library = ctypes.PyDLL(None, handle=_library()._handle)
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

    def call_limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _limit:
            return function(*args, **kwargs)

    return call_limited
