"""A simulated round in C, `simulated_round.c`, compiled where there is a compiler."""

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from arrivals import Array

FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")

Simulate = Callable[[int, int], float]
"""simulate(horizon, seed): play a run, and return its cumulative regret."""


def compile_c_round(theta: Array) -> Simulate | None:
    """Compile the program and load it; None without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    source = Path(__file__).with_name("simulated_round.c")
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/simulated_round.so"
        subprocess.run([compiler, *FLAGS, "-o", library, str(source), "-lm"], check=True)  # noqa: S603
        function = ctypes.CDLL(library).simulate
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64]
    entries = np.ascontiguousarray(theta)

    def simulate(horizon: int, seed: int) -> float:
        return float(function(entries.ctypes.data, horizon, seed))

    return simulate
