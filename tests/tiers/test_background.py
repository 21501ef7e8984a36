"""Machine code in the background, in real processes: taken over, stopped, forked, shared, read-only, missing."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import children_of

from latecomer.tiers import tiered_kernel

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


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the machine code of the policy."""
    return fill(tmp_path_factory.mktemp("warm") / "code", processes=1)


def fill(cache: Path, *, processes: int) -> Path:
    """Have so many processes make the machine code of the policy in one folder at the same time."""
    code = "policy.decide(np.eye(2)); print('numba' in sys.modules, decide_until_compiled())"
    started = [
        subprocess.Popen([sys.executable, "-c", DECIDE + code], env=settings(cache), stdout=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(processes)
    ]
    said = [process.communicate(timeout=400)[0].split() for process in started]
    assert said == [["False", "True"]] * processes, "the first decision waits for no compiler"
    assert files_of(cache)
    return cache


def test_machine_code_takes_over_between_two_decisions(warm: Path) -> None:
    """A policy that was compiled on the way plays as one that was not."""
    code = "decide_until_compiled(); n = policy.rounds; print(n, [policy.decide(np.eye(2)).index for _ in range(50)])"
    count, rest = python(code, warm).stdout.split(maxsplit=1)
    code = f"[policy.decide(np.eye(2)) for _ in range({count})]"
    code += "; print([policy.decide(np.eye(2)).index for _ in range(50)])"
    plain = python(code, warm, LATECOMER_COMPILE="never")
    assert rest == plain.stdout


@pytest.mark.soak
def test_what_two_processes_have_made_in_one_folder_is_not_compiled_again(tmp_path: Path) -> None:
    """That what one has made is not is shown with a folder that is only read."""
    cache = fill(tmp_path / "code", processes=2)
    before = files_of(cache)
    assert python("print(decide_until_compiled())", cache).stdout.strip() == "True"
    assert files_of(cache) == before


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_compiling_process_ends_with_its_parent(tmp_path: Path, end: signal.Signals) -> None:
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", DECIDE + "decide_until_compiled()"], env=settings(tmp_path / "cold")
    )
    deadline = time.monotonic() + 60
    while not (compiling := children_of(process.pid)) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert compiling, "no process was started to compile"
    process.send_signal(end)
    assert process.wait(timeout=10) == -end
    while any(Path(f"/proc/{child}/cmdline").exists() for child in compiling) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(Path(f"/proc/{child}/cmdline").exists() for child in compiling)


def test_a_script_that_ends_at_once_waits_for_nobody(tmp_path: Path) -> None:
    code = "import os\nwhile not policy.state.code.decide_small.is_requested: policy.decide(np.eye(2))\n"
    started = time.monotonic()
    done = python(code + "print(time.monotonic())", tmp_path / "cold")
    assert done.stderr == ""
    assert time.monotonic() - max(started, float(done.stdout)) < 5


@pytest.mark.parametrize("forks", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_a_forked_process_decides_on(warm: Path, forks: int) -> None:
    """Forks before machine code is asked for, and while it is loaded."""
    code = (
        f"forks = {forks}"
        + """
import os, warnings
warnings.simplefilter("ignore")
children = []
for _ in range(forks):
    policy.decide(np.eye(2))
    if (child := os.fork()) == 0:
        os._exit(0 if decide_until_compiled(200.0) else 1)
    children.append(child)
    time.sleep(0.2)
decide_until_compiled()
print([os.waitpid(child, 0)[1] for child in children])
"""
    )
    assert python(code, warm).stdout.strip() == str([0] * forks)


def test_a_read_only_folder_is_read(warm: Path) -> None:
    """Root may write anywhere: for it, this shows only that nothing is written."""
    before = files_of(warm)
    for folder in [warm, *warm.iterdir()]:
        folder.chmod(0o500)
    try:
        assert python("print(decide_until_compiled())", warm).stdout.strip() == "True"
        assert files_of(warm) == before
    finally:
        for folder in [warm, *warm.iterdir()]:
            folder.chmod(0o700)


@pytest.mark.soak
def test_where_nothing_can_be_kept_it_is_compiled_for_this_process(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = python("print(decide_until_compiled())", tmp_path / "file")
    assert done.stdout.strip() == "True"


def test_a_damaged_file_is_compiled_again(warm: Path, tmp_path: Path) -> None:
    """The index of one kernel and the code of another, those that take least time to compile."""
    damaged = tmp_path / "damaged"
    shutil.copytree(warm, damaged)
    (index,) = damaged.rglob("is_admissible*.nbi")
    (code,) = damaged.rglob("apply_conversion*.nbc")
    for path in (index, code):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    cut_short = {path: path.read_bytes() for path in (index, code)}
    script = """
from latecomer.policies.base.policy_code import is_admissible
decide_until_compiled()
while isinstance(policy.state.code.convert, TieredKernel) or not is_admissible.is_compiled:
    time.sleep(0.01)
print(is_admissible(np.eye(2), 2), policy.convert(policy.rounds).value)
"""
    assert python(script, damaged).stdout.split() == ["True", "accepted"]
    assert all(path.read_bytes() != before for path, before in cut_short.items()), "it is kept again"


def test_never_says_so_once_and_decides(tmp_path: Path) -> None:
    done = python("print(decide_until_compiled(1.0), 'numba' in sys.modules)", tmp_path, LATECOMER_COMPILE="never")
    assert done.stdout.split() == ["False", "False"]
    assert done.stderr.count("LATECOMER_COMPILE is never") == 1
    assert not files_of(tmp_path)


def test_without_numba_it_says_so_once_and_decides(tmp_path: Path) -> None:
    code = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = classmethod(lambda cls, name, *rest: None if name == "numba" else find(name, *rest))
print(decide_until_compiled(1.0))
world = lc.World(theta=[0.5, 0.5], actions=lc.actions.Binary(3), delays=lc.delays.Geometric(mean=5))
print(lc.simulate(world, {"uniform": policy}, horizon=100, runs=2).regret("uniform").shape)
"""
    done = python(code, tmp_path)
    assert done.stdout.split("\n")[:2] == ["False", "(2, 100)"]
    assert done.stderr.count("Numba is not installed") == 1


SIMULATE = """
from latecomer.simulation.player import find_block_kernel
world = lc.World(theta=[0.5, 0.5], actions=lc.actions.Binary(3), delays=lc.delays.Geometric(mean=5))
def play():
    return lc.simulate(world, {"uniform": policy}, horizon=2500, runs=1).regret("uniform")
first, is_loaded = play(), "numba" in sys.modules
kernel, end = find_block_kernel(policy, world), time.monotonic() + 300
"""
MEANWHILE = "compiling Uniform for d = 2 meanwhile, once on this machine"


def test_a_short_simulation_does_not_wait_for_the_compiler(tmp_path: Path) -> None:
    """It says that machine code is made meanwhile."""
    done = python(SIMULATE + "print(is_loaded, kernel.is_requested, first.shape)", tmp_path)
    assert done.stdout.split(maxsplit=2) == ["False", "True", "(1, 2500)\n"]
    assert done.stderr.count(MEANWHILE) == 1


@pytest.mark.soak
def test_machine_code_takes_over_between_two_blocks_of_a_simulation(tmp_path: Path) -> None:
    """And changes no bit."""
    code = """
while not kernel.is_compiled and time.monotonic() < end:
    time.sleep(0.1)
print(is_loaded, kernel.is_compiled, (play() == first).all())
"""
    done = python(SIMULATE + code, tmp_path)
    assert done.stdout.split() == ["False", "True", "True"]
    assert done.stderr.count(MEANWHILE) == 1


def test_what_could_not_be_made_is_tried_again(warm: Path) -> None:
    code = """
from latecomer.tiers import background, tiered_kernel
tiered_kernel.RETRY_SECONDS = 0.2
make, failures = background._Worker._make, []
def fail_once(worker, kernels):
    if not failures:
        failures.append(kernels)
        raise OSError("no room")
    make(worker, kernels)
background._Worker._make = fail_once
print(decide_until_compiled(), len(failures))
"""
    done = python(code, warm)
    assert done.stdout.split() == ["True", "1"]
    assert done.stderr.count("machine code could not be made, decisions go on as plain Python: OSError('no room')") == 1


def test_an_unknown_mode_is_named(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv(tiered_kernel.VARIABLE, "yes")
    monkeypatch.setattr(tiered_kernel, "_said", set())
    assert tiered_kernel.compile_mode() == "auto"
    assert "LATECOMER_COMPILE must be one of auto, bulk, never, now; got 'yes'" in caplog.text


def test_a_policy_of_a_script_is_compiled_in_a_thread(tmp_path: Path) -> None:
    """No other process can import it."""
    code = """
import inspect, linecache
source = '''
from latecomer.policies.base.algorithm import Algorithm, zero_width
from latecomer.policies.base.policy import LinearPolicy
def choose(state, ring, actions, draws, scores):
    for k in range(actions.shape[0]):
        scores[k] = actions[k, 0]
    return 0
class First(LinearPolicy):
    algorithm = Algorithm("First", choose=choose, width=zero_width)
'''
linecache.cache["<script>"] = (len(source), None, source.splitlines(True), "<script>")
exec(compile(source, "<script>", "exec"), globals())
policy = First(2, 10, ridge=1.0)
print(decide_until_compiled(), policy.decide(np.eye(2)).score)
"""
    assert python(code, tmp_path / "cold").stdout.split() == ["True", "1.0"]


def test_symbols_of_machine_code_carry_its_key(warm: Path) -> None:
    """Functions of one name from two processes would be taken for each other where both are loaded."""
    for path in warm.rglob("*.nbc"):
        name, digest = path.name.split(".")[0].rsplit("-", 1)
        assert f"{name}_{digest}".encode() in path.read_bytes()


TWO_DIMENSIONS = """
def play(dim):
    policy, rng = lc.recommended(dim, 10, seed=1), np.random.default_rng(0)
    return [policy.decide(rng.random((4, dim)) / dim).score for _ in range(50)]
compiled = [int(dim) for dim in sys.argv[1:]]
plain = [play(dim) for dim in compiled]
for dim in compiled:
    lc.recommended(dim, 10).state.code.decide_small.compile()
print([play(dim) for dim in compiled] == plain)
"""


@pytest.mark.soak
def test_dimensions_that_two_processes_compiled_do_not_mix(tmp_path: Path) -> None:
    for dims in (["2"], ["5"], ["2", "5"]):
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", DECIDE + TWO_DIMENSIONS, *dims], env=settings(tmp_path, LATECOMER_COMPILE="never"),
            check=True, capture_output=True, text=True, timeout=400,
        )  # fmt: skip
        assert done.stdout.strip() == "True"
