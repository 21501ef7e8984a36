"""Machine code on disk, under a key of the text, of the versions that compile it, and of the processor.

Nothing here imports Numba: whether code is there can be told without it.
"""

import hashlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

VARIABLE = "LATECOMER_CACHE_DIR"


def find_cache_folder() -> Path | None:
    """Return the folder of LATECOMER_CACHE_DIR, or the user's own for caches; None where there is no place for one."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    with suppress(RuntimeError):  # no home
        folder = Path(base, "latecomer").expanduser()
        return folder if folder.is_absolute() else None
    return None


def is_writable(folder: Path) -> bool:
    """Tell whether files can be made in a folder, which is made where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


@cache
def _versions() -> str:
    def find(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "none"

    return " ".join((platform.python_version(), *map(find, ("numpy", "numba", "llvmlite"))))


@cache
def _processor() -> str:
    """Return what machine code is made for, as Numba's own index has it: the platform, the processor and its features.

    Without it in the key, code of another processor would seem to be there, and be compiled where it is to be loaded.
    """
    try:
        from llvmlite import binding  # type: ignore[import-untyped]  # noqa: PLC0415 - 40 ms, where a key is needed
    except ImportError:
        return platform.machine()
    name, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    if features is None:
        features = "" if str(name).lower() == "generic" else binding.get_host_cpu_features().flatten()
    return f"{binding.get_process_triple()} {name or binding.get_host_cpu_name()} {features}"


class CodeKey(NamedTuple):
    """The key of an entry point's machine code."""

    name: str
    digest: str

    def folder(self, cache_folder: Path) -> Path:
        """Return the folder of its files."""
        return cache_folder / self.digest[:2]

    def is_in(self, cache_folder: Path | None) -> bool:
        """Tell whether there is machine code under this key. Numba writes the index (.nbi) first, then the code."""
        return cache_folder is not None and any(self.folder(cache_folder).glob(f"{self.name}-{self.digest}*.nbc"))


def code_key(entry: Callable[..., Any], text: str, *, holds_gil: bool) -> CodeKey:
    """Return the key of an entry point whose flattened source is `text`."""
    described = f"{__name__} 3 {_versions()} {_processor()} {holds_gil}\n{text}"
    digest = hashlib.sha256(described.encode()).hexdigest()
    return CodeKey(entry.__name__, digest[:32])
