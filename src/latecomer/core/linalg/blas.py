"""Limit BLAS to one thread while a kernel runs, and restore the process's setting afterwards."""

from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import ParamSpec, TypeVar

from threadpoolctl import LibController, ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _libraries() -> list[LibController]:
    """Return the BLAS that Numba calls, which is SciPy's."""
    import scipy.linalg.cython_blas  # noqa: F401, PLC0415 - loaded, so that it can be found

    found: list[LibController] = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in found if "scipy.libs" in str(library.filepath)] or found


class _Limit:
    """One BLAS thread from the first entry until the last exit; then the process's earlier setting."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._before: list[int] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = [library.num_threads for library in _libraries()]
                _set_threads([1] * len(self._before))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                _set_threads(self._before)


def _set_threads(counts: list[int]) -> None:
    for library, count in zip(_libraries(), counts, strict=True):
        # threadpoolctl lets only the first thread that ever set an OpenBLAS set it again; here the lock orders threads
        clear = getattr(library, "clear_controlling_thread", None)
        if clear:
            clear(force=True)
        library.set_num_threads(count)


_limit = _Limit()


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that BLAS has one thread while it runs: same numbers, and no contention for cores.

    The setting is the process's: where several Python threads do this, the last of them to leave restores it.
    """

    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _limit:
            return function(*args, **kwargs)

    return limited
