"""Machine code in the background, in real processes: taken over, stopped, forked, shared, read-only, missing."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from compiling_processes import DECIDE, files_of, python, settings
from processes import children_of

import latecomer as lc
from latecomer.policies.base.policy_code import PolicyCode
from latecomer.tiers import tiered_kernel

FILL = """
policy.decide(np.eye(2))
print('numba' in sys.modules, decide_until_compiled(), policy.rounds)
print([policy.decide(np.eye(2)).index for _ in range(50)])
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """Return a folder with the machine code of the policy, the rounds before there was any, and 50 choices after."""
    cache = tmp_path_factory.mktemp("warm") / "code"
    return cache, *fill(cache, processes=1)


@pytest.fixture
def warm(filled: tuple[Path, int, str]) -> Path:
    """Return a folder with the machine code of the policy."""
    return filled[0]


def fill(cache: Path, *, processes: int) -> tuple[int, str]:
    """Have so many processes make the machine code of the policy in one folder at the same time."""
    started = [
        subprocess.Popen([sys.executable, "-c", DECIDE + FILL], env=settings(cache), stdout=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(processes)
    ]
    for process in started:
        is_loaded, is_compiled, rounds, choices = process.communicate(timeout=400)[0].split(maxsplit=3)
        assert (is_loaded, is_compiled) == ("False", "True"), "the first decision waits for no compiler"
    assert files_of(cache)
    return int(rounds), choices


def test_machine_code_takes_over_between_two_decisions(filled: tuple[Path, int, str]) -> None:
    """A policy that was compiled on the way plays as one that was not."""
    policy = lc.Uniform(2, 10, seed=0)
    policy.state.code = PolicyCode(policy.algorithm, policy.state.record, None)
    _, rounds, choices = filled
    for _ in range(rounds):
        policy.decide(np.eye(2))
    assert isinstance(policy.state.code.decide_small, tiered_kernel.TieredKernel), "this one is plain Python"
    assert choices == f"{[policy.decide(np.eye(2)).index for _ in range(50)]}\n"


@pytest.mark.soak
def test_what_two_processes_have_made_in_one_folder_is_not_compiled_again(tmp_path: Path) -> None:
    """That what one has made is not is shown with a folder that is only read."""
    cache = tmp_path / "code"
    fill(cache, processes=2)
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
    """Forks before machine code is asked for, and while it is loaded, by a thread that the child has not."""
    code = (
        f"forks = {forks}"
        + """
import os, warnings
warnings.simplefilter("ignore")
children = []
for fork in range(forks):
    policy.decide(np.eye(2))
    while fork and not getattr(policy.state.code.decide_small, "is_requested", True):
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


FAIL_ONCE = """
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


def test_a_read_only_folder_is_read_and_what_could_not_be_made_is_tried_again(warm: Path) -> None:
    """Root may write anywhere: for it, this shows only that nothing is written."""
    before = files_of(warm)
    for folder in [warm, *warm.iterdir()]:
        folder.chmod(0o500)
    try:
        done = python(FAIL_ONCE, warm)
        assert files_of(warm) == before
    finally:
        for folder in [warm, *warm.iterdir()]:
            folder.chmod(0o700)
    assert done.stdout.split() == ["True", "1"]
    assert done.stderr.count("machine code could not be made, decisions go on as plain Python: OSError('no room')") == 1


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
MEANWHILE = "compiling Uniform for d = 2 meanwhile; until then"


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


def test_a_policy_of_a_script_is_compiled_in_a_thread(warm: Path, tmp_path: Path) -> None:
    """No other process can import it; of its kernels, which are those of `Uniform`, one is not on disk."""
    cache = tmp_path / "cold"
    shutil.copytree(warm, cache)
    (missing,) = cache.rglob("is_admissible*.nbc")
    missing.unlink()
    code = """
from latecomer.policies.base import policy_code
from latecomer.tiers import background
class Own(lc.Uniform):
    pass
policy_code._codes.clear()  # those of `Uniform`, which another process can make
background.subprocess = None  # none can be started
policy = Own(2, 10, seed=0)
print(decide_until_compiled(60.0), policy.decide(np.eye(2)).score)
while not policy_code.is_admissible.is_compiled:
    time.sleep(0.01)
"""
    assert python(code, cache).stdout.split() == ["True", "0.5"]
    assert missing.exists()


def test_machine_code_of_another_processor_is_not_taken_for_its_own(warm: Path) -> None:
    """Numba has the processor in its index: the files would be there, and nothing could be loaded from them."""
    code = "from latecomer.tiers.code_cache import find_cache_folder\n"
    code += "print(policy.state.code.decide_small.key.is_in(find_cache_folder()), 'numba' in sys.modules)"
    assert python(code, warm).stdout.split() == ["True", "False"]
    assert python(code, warm, NUMBA_CPU_NAME="generic").stdout.split() == ["False", "False"]


def test_symbols_of_machine_code_carry_its_key(warm: Path) -> None:
    """Functions of one name from two processes would be taken for each other where both are loaded."""
    for path in warm.rglob("*.nbc"):
        name, digest = path.name.split(".")[0].rsplit("-", 1)
        assert f"{name}_{digest}".encode() in path.read_bytes()


@pytest.mark.soak
def test_a_store_has_the_code_of_its_next_restart_made(tmp_path: Path) -> None:
    code = f"""
from latecomer.tiers.tiered_kernel import TieredKernel
with lc.open({str(tmp_path / "shop.db")!r}, dim=2, window=10, policy='Uniform') as shop:
    code, began = lc.Uniform(2, 10).state.code, time.time()
    while isinstance(code.record_many, TieredKernel) and time.time() < began + 200:
        time.sleep(0.1)
"""
    python(code, tmp_path / "code")
    assert any("record_many" in str(file) for file in files_of(tmp_path / "code"))
