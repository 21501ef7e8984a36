"""Where machine code is kept on disk, and under which key: the text that is compiled, and the versions that compile it.

Nothing here imports a compiler: whether code is there can be told without one.
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
    digest = hashlib.sha256(f"{__name__} 2 {_versions()} {holds_gil}\n{text}".encode()).hexdigest()
    return CodeKey(entry.__name__, digest[:32])
