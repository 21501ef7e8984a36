"""Python processes that decide until machine code, made in the background, takes over."""

import os
import subprocess
import sys
from pathlib import Path

POLICY = "lc.Uniform(2, 10, seed=0)"  # the smallest machine code there is
DECIDE = f"""
import sys, time, numpy as np, latecomer as lc
from latecomer.tiers.tiered_kernel import TieredKernel
policy = {POLICY}
def is_plain():
    return isinstance(policy.state.code.decide_small, TieredKernel)
def decide_until_compiled(seconds=300.0):
    end = time.monotonic() + seconds
    while is_plain() and time.monotonic() < end:
        policy.decide(np.eye(2))
        if getattr(policy.state.code.decide_small, "is_requested", True):
            time.sleep(0.02)  # the compiler gets the core
    return not is_plain()
"""


def python(code: str, cache: Path, *, check: bool = True, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", DECIDE + code], env=settings(cache, **environment), check=check, capture_output=True,
        text=True, timeout=400,
    )  # fmt: skip


def settings(cache: Path, **environment: str) -> dict[str, str]:
    return {**os.environ, "LATECOMER_CACHE_DIR": str(cache), "LATECOMER_COMPILE": "auto", **environment}


def files_of(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}
