"""Machine code of an algorithm that a script defines, and of dimensions that two processes have compiled."""

import subprocess
import sys
from pathlib import Path

import pytest
from compiling_processes import DECIDE, python, settings


@pytest.mark.soak
def test_an_algorithm_of_a_script_is_compiled_in_a_thread(tmp_path: Path) -> None:
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
