"""BLAS with one thread while a kernel needs it, and the process's own setting afterwards."""

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar

from threadpoolctl import LibController, ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _libraries() -> list[LibController]:
    """The BLAS that Numba calls, which is SciPy's."""
    import scipy.linalg.cython_blas  # noqa: F401, PLC0415 - loaded, so that it can be found

    found: list[LibController] = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in found if "scipy.libs" in str(library.filepath)] or found


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with BLAS kept to one thread while it runs: same numbers, and no fight for cores.

    Where several Python threads do this, threadpoolctl lets the first of them control the setting.
    """

    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        before = [library.num_threads for library in _libraries()]
        for library in _libraries():
            library.set_num_threads(1)
        try:
            return function(*args, **kwargs)
        finally:
            for library, threads in zip(_libraries(), before, strict=True):
                library.set_num_threads(threads)

    return limited
