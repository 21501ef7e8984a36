"""latecomer warm."""

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from latecomer.cli.main import app
from latecomer.policies.base.policy_code import PolicyCode, is_admissible
from latecomer.policies.uniform import Uniform
from latecomer.service.http import rows_kernel
from latecomer.service.http.rows_kernel import READERS
from latecomer.tiers.tiered_kernel import TieredKernel


def find_two_kernels(code: PolicyCode) -> list[TieredKernel]:
    """Return those that take least time to compile, where they are not compiled yet."""
    return [kernel for kernel in (is_admissible, code.revoke) if isinstance(kernel, TieredKernel)]


@pytest.mark.parametrize("kernels", [find_two_kernels, pytest.param(PolicyCode.tiered, marks=pytest.mark.soak)])
def test_warm_compiles_what_a_policy_needs(kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a policy had two kernels; in the soak with every one that it has."""
    monkeypatch.setattr(PolicyCode, "tiered", kernels)
    monkeypatch.setattr(rows_kernel, "READERS", [kernel for kernel in READERS if kernels is PolicyCode.tiered])
    missing = [kernel.key for kernel in Uniform(2, 1).state.code.tiered() if not kernel.is_compiled]
    assert missing
    monkeypatch.setenv("LATECOMER_CACHE_DIR", str(tmp_path / "code"))
    done = CliRunner().invoke(app, ["warm", "--policy", "Uniform", "--dim", "2"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    made = [line for line in lines if line.endswith(": compiling Uniform for d = 2, once on this machine …")]
    assert made, done.output
    assert len({line.split(":")[0] for line in made}) == len(made), "each says which of how many it is"
    assert {line.split(":")[0].split(" of ")[1] for line in lines[:-1]} == {lines[-2].split(" of ")[0]}
    assert f"machine code is in {tmp_path / 'code'}" in done.output
    assert all(key.is_in(tmp_path / "code") for key in missing)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--policy", "LinUBC"], "did you mean 'LinUCB'?"), (["--dim", "0"], "Invalid value for '--dim'")],
)
def test_warm_refuses_what_it_does_not_know(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["warm", *arguments])
    assert done.exit_code == 2
    assert said in done.output


def test_warm_says_why_there_is_nothing_to_make(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATECOMER_COMPILE", "never")
    done = CliRunner().invoke(app, ["warm"])
    assert (done.exit_code, done.stderr) == (1, "LATECOMER_COMPILE is never: unset it to make machine code\n")
    monkeypatch.setattr("latecomer.policies.warm.has_numba", lambda: False)
    done = CliRunner().invoke(app, ["warm"])
    assert (done.exit_code, done.stderr) == (1, "there is no machine code without Numba: pip install numba\n")


def test_warm_needs_a_folder_that_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LATECOMER_CACHE_DIR", os.fspath(tmp_path / "file"))
    done = CliRunner().invoke(app, ["warm"])
    assert done.exit_code == 1
    assert "set LATECOMER_CACHE_DIR to a folder that can be written" in done.output
