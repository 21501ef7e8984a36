"""BLAS with one thread while a kernel needs it, and the process's own setting afterwards."""

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import LibController, ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


class _Limit:
    """A context that nests and is shared between threads: the first in sets the limit, the last out lifts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._libraries: list[LibController] = []
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._libraries = self._libraries or _blas_libraries()
                self._before = [library.num_threads or 1 for library in self._libraries]
                for library in self._libraries:
                    library.set_num_threads(1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for library, threads in zip(self._libraries, self._before, strict=True):
                    library.set_num_threads(threads)


def _blas_libraries() -> list[LibController]:
    """The BLAS that Numba calls, which is SciPy's."""
    import scipy.linalg.cython_blas  # noqa: F401, PLC0415 - loaded, so that it can be found

    found: list[LibController] = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in found if "scipy.libs" in str(library.filepath)] or found


_LIMIT = _Limit()


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with BLAS kept to one thread while it runs: same numbers, and no fight for cores."""

    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _LIMIT:
            return function(*args, **kwargs)

    return limited
