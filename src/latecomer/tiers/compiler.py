"""Machine code of kernels, by Numba, kept on disk.

A kernel is flattened (`flatten`), and the text of the result, with the versions of what compiles it and the processor,
is the key of its machine code (`code_cache`): a changed kernel is never run from old code, and processes that share a
folder write the same thing. A folder that cannot be written is read all the same. Importing this module imports Numba.
"""

import ctypes
import gc
import linecache
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, cast

import numba
from llvmlite.binding import add_symbol  # type: ignore[import-untyped]
from numba.core import caching, types

from latecomer.core.jit import ExternalFunction
from latecomer.tiers.code_cache import CodeKey
from latecomer.tiers.source import Source

lock = RLock()
"""Held while Numba works: its own lock would be left locked in a child that is forked meanwhile."""

_TYPES = {"void": types.void, "double": types.float64, "int64": types.int64, "pointer": types.voidptr}
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}


class _Locator(caching._CacheLocator):  # Numba has no public one
    """The folder of one key, whether it can be written or not."""

    def __init__(self, folder: Path, key: CodeKey) -> None:
        self._folder, self._key = folder, key

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._key.digest

    def get_disambiguator(self) -> str:
        return self._key.digest


class _CodeFiles(caching.CompileResultCacheImpl):
    """The files of one key, as Numba's cache wants them described."""

    def __init__(self, folder: Path, key: CodeKey) -> None:
        self._lineno = 1
        self._locator = _Locator(folder, key)
        self._filename_base = self.get_filename_base(key.name, key.digest)  # type: ignore[no-untyped-call]


class _CodeCache(caching.FunctionCache):
    """The machine code of one entry point; what cannot be saved is compiled again by the next process."""

    def __init__(self, function: Callable[..., Any], folder: Path, key: CodeKey) -> None:
        self._impl_class = cast(Any, lambda _: _CodeFiles(folder, key))
        super().__init__(function)  # type: ignore[no-untyped-call]
        self.was_loaded = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = None
        try:
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001 - whatever is wrong with a file, the code can be made again
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
        self.was_loaded = found is not None
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def machine_code(
    source: Source, key: CodeKey, examples: tuple[Any, ...], *, folder: Path | None, holds_gil: bool
) -> tuple[Callable[..., Any], float]:
    """Return the machine code of a flattened source for arguments of the examples' types, and the seconds it took.

    The seconds are 0 where it was on disk. A call of the code looks at no types, which saves half a microsecond: the
    caller must pass those of the examples.
    """
    with lock:
        began = time.perf_counter()
        dispatcher = _make_dispatcher(source, key, holds_gil=holds_gil)
        if folder is not None:
            dispatcher._cache = _CodeCache(dispatcher.py_func, key.folder(folder), key)
        with _without_garbage_collection():
            code = dispatcher.compile(tuple(map(numba.typeof, examples)))
        was_loaded = getattr(dispatcher._cache, "was_loaded", False)
        return code, 0.0 if was_loaded else time.perf_counter() - began


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Keep the compiler's many objects from being looked through again and again: a tenth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _make_dispatcher(source: Source, key: CodeKey, *, holds_gil: bool) -> Any:
    """Define the functions of a source, each as Numba's, so that later ones find the earlier; return the last.

    A symbol of machine code has the name of its function, the types of its arguments, and a number that begins anew in
    each process: two dimensions that two processes have compiled would call each other's functions. So the key is part
    of the name.
    """
    filename = f"<latecomer {key.name} {key.digest}>"
    namespace: dict[str, Any] = {"__name__": __name__}  # a module that Numba can import when it loads the code
    for name, value in source.namespace.items():
        namespace[name] = _external(value) if isinstance(value, ExternalFunction) else value
    text = source.text
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), namespace)  # noqa: S102 - the project's own kernels
    *callees, entry = (function.name for function in source.functions)
    for name in (*callees, entry):
        namespace[name].__qualname__ = f"{name}_{key.digest}"
    for name in callees:
        namespace[name] = numba.njit(nogil=True, **_OPTIONS)(namespace[name])
    return numba.njit(nogil=not holds_gil, **_OPTIONS)(namespace[entry])


def _external(external: ExternalFunction) -> Any:
    """Give machine code the address of a function outside, under its symbol."""
    add_symbol(external.symbol, ctypes.cast(external.function, ctypes.c_void_p).value)
    result, *arguments = (_TYPES[name] for name in external.signature)
    return types.ExternalFunction(external.symbol, result(*arguments))
