"""The time to import the package, and to the first decision: whole fresh processes, as a user waits for them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rows import Row, verdict
from timing import interleaved

LIMIT = 0.5
REPEATS = 9
_IMPORT = "import latecomer, sys; print('numba' in sys.modules)"
_FIRST_DECISION = """
from time import perf_counter
start = perf_counter()
import numpy as np, latecomer as lc
policy = lc.OTFLinUCB(dim=5, window=100)
made = perf_counter()
policy.decide(np.eye(5))
print(made - start, perf_counter() - made)
"""


def rows() -> Iterator[Row]:
    yield _import_row()
    yield _help_row()
    yield _first_decision_row()


def _run(command: list[str], **environment: str) -> str:
    return subprocess.run(  # noqa: S603
        command, env={**os.environ, **environment}, check=True, capture_output=True, text=True
    ).stdout


def _python(code: str, **environment: str) -> str:
    return _run([sys.executable, "-c", code], **environment)


def _import_row() -> Row:
    is_lazy = _python(_IMPORT).strip() == "False"
    times = interleaved({"import": (lambda: _python(_IMPORT), 1), "bare": (lambda: _python(""), 1)}, repeats=REPEATS)
    seconds = times.typical("import")
    return Row(
        work="import latecomer, warm",
        measured=f"{seconds:.3f} s",
        must_reach=f"< {LIMIT} s",
        verdict=verdict(is_lazy and seconds < LIMIT),
        detail=f"the whole process, median of {REPEATS}; a bare interpreter takes {times.typical('bare'):.3f} s; "
        f"Numba is {'not ' if is_lazy else ''}loaded by it",
    )


def _help_row() -> Row:
    work, must_reach = "latecomer --help, warm", f"< {LIMIT} s"
    script = Path(sys.executable).with_name("latecomer")
    command = [str(script)] if script.exists() else [sys.executable, "-m", "latecomer"]
    try:
        times = interleaved({"help": (lambda: _run([*command, "--help"]), 1)}, repeats=REPEATS)
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().splitlines()[-1]
        return Row(work=work, measured="fails", must_reach=must_reach, verdict=verdict(False), detail=reason)
    return Row(
        work=work,
        measured=f"{times.typical('help'):.3f} s",
        must_reach=must_reach,
        verdict=verdict(times.typical("help") < LIMIT),
        detail=f"the whole process, median of {REPEATS}",
    )


def _first_decision_row() -> Row:
    """Compiled once: with the cache on disk, a new process only loads."""
    with TemporaryDirectory() as cache:
        cold_make, cold = map(float, _python(_FIRST_DECISION, NUMBA_CACHE_DIR=cache).split())
        warm = [tuple(map(float, _python(_FIRST_DECISION, NUMBA_CACHE_DIR=cache).split())) for _ in range(3)]
    warm_make, warm_decide = (median(column) for column in zip(*warm, strict=True))
    return Row(
        work="first decision, cold cache and warm",
        measured=f"{cold:.2f} s cold, {warm_decide:.2f} s warm",
        must_reach="compiled once, cached on disk",
        verdict=verdict(warm_decide < cold / 2),
        detail=f"in fresh processes; before it, importing Numba and making the policy: {cold_make:.2f} s and "
        f"{warm_make:.2f} s; in all {cold_make + cold:.2f} s and {warm_make + warm_decide:.2f} s",
    )
