"""The words of a kernel while it is compiled, in this process."""

from pathlib import Path

import pytest

from latecomer.core.jit import kernel
from latecomer.tiers import background, compiler, tiered_kernel


@kernel
def add_one(number: float) -> float:
    """Add one."""
    return number + 1.0


@pytest.mark.parametrize("place", ["background", "here"])
def test_a_folder_that_cannot_be_written_is_mentioned_once(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LATECOMER_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(tiered_kernel, "_said", set())
    monkeypatch.setattr(background._Worker, "_compile_in_child", lambda *_: None)
    monkeypatch.setattr(compiler, "machine_code", lambda source, *_, **__: (source, 0.0))
    said: list[str] = []
    for _ in range(2):
        kernel = tiered_kernel.TieredKernel(add_one, tuple, label="a kernel")
        if place == "here":
            kernel.compile(said.append)
        else:
            background._Worker()._make([kernel])
        assert kernel.is_compiled
    assert caplog.text.count(f"machine code cannot be kept in {tmp_path / 'file'}") == 1
    assert "set LATECOMER_CACHE_DIR to a folder that can be written" in caplog.text
    assert said == ["compiling a kernel …", "compiled in 0.0 s"] * 2 * (place == "here"), "not once on this machine"


def test_an_interrupted_compilation_has_no_traceback_of_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compiler, "machine_code", interrupted)
    with pytest.raises(KeyboardInterrupt, match="while compiling a kernel") as raised:
        tiered_kernel.TieredKernel(add_one, tuple, label="a kernel").compile()
    assert raised.value.__suppress_context__


def test_an_unknown_mode_is_named(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv(tiered_kernel.VARIABLE, "yes")
    monkeypatch.setattr(tiered_kernel, "_said", set())
    assert tiered_kernel.compile_mode() == "auto"
    assert "LATECOMER_COMPILE must be one of auto, bulk, never, now; got 'yes'" in caplog.text
