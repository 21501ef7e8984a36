"""Flattened source does what the kernels do: the same operations in the same order."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from latecomer.core.jit import hook, kernel, kernel_noinline, vectorised
from latecomer.policies.base.kernels import decide_one
from latecomer.policies.base.policy_code import state_kind
from latecomer.policies.otf_lin_ucb import OTFLinUCB
from latecomer.tiers.code_cache import code_key
from latecomer.tiers.flatten import flatten
from latecomer.tiers.source import Source, StateKind

FACTOR = 3


def run(source: Source) -> Any:
    """Define the functions of a source as plain Python, and return the last."""
    namespace = dict(source.namespace)
    exec(source.text, namespace)  # noqa: S102 - the source under test
    return namespace[source.functions[-1].name]


@kernel
def sign_of(x: float) -> float:
    if x > 0.0:
        return 1.0
    if x < 0.0:
        return -1.0
    return 0.0


@kernel
def take_next(log: Any) -> int:
    """Count up, so that the order of calls shows."""
    log[0] += 1
    return int(log[0])


@kernel
def sums_in_order(log: Any, x: float) -> float:
    first = 100 * log[0] + take_next(log) * FACTOR
    return float(first + log[0] * 10 + sign_of(x))


@kernel
def decides_lazily(log: Any, x: float) -> bool:
    return (x > 0.0 and take_next(log) > 1) or x < -1.0


@kernel
def loops_while(log: Any, most: int) -> int:
    steps = 0
    while take_next(log) < most:
        steps += 1
        if steps == 5:
            continue
    return steps


@kernel
def finds_first(values: Any, wanted: float) -> int:
    for i in range(values.shape[0]):
        if values[i] == wanted:
            return i
    return -1


@kernel
def finds_twice(values: Any, wanted: float) -> int:
    found = finds_first(values, wanted)
    return found if found >= 0 else finds_first(values, -wanted)


@pytest.mark.parametrize("x", [2.0, 0.0, -0.5, -3.0])
@pytest.mark.parametrize("function", [sums_in_order, decides_lazily])
def test_order_of_evaluation_and_short_circuits_are_kept(function: Any, x: float) -> None:
    flat = run(flatten(function, None))
    for start in (0, 1, 5):
        ours, theirs = np.array([start]), np.array([start])
        assert (flat(ours, x), ours[0]) == (function(theirs, x), theirs[0])


def test_calls_in_a_loop_condition_are_made_at_every_step() -> None:
    ours, theirs = np.zeros(1), np.zeros(1)
    assert run(flatten(loops_while, None))(ours, 9) == loops_while(theirs, 9)
    assert ours[0] == theirs[0] == 9


def test_a_kernel_that_returns_from_a_loop_stays_a_function() -> None:
    source = flatten(finds_twice, None)
    assert [function.name for function in source.functions] == ["finds_first_1", "finds_twice"]
    flat = run(source)
    for wanted in (3.0, -5.0, 7.0):
        values = np.array([1.0, 3.0, 5.0])
        assert flat(values, wanted) == finds_twice(values, wanted)


@kernel
def branches_on_shape(states: Any, x: float) -> float:
    state = states[0]
    dim = state.B.shape[0]
    if dim > 2 and state.flag == 1:
        return float(state.absent * x)
    total = 0.0
    for i in range(dim):
        total += state.B[i] * x
    return total


def test_what_a_kind_of_state_decides_is_decided_before_compiling() -> None:
    kind = StateKind(shapes={"B": (2,), "flag": ()}, constants={"flag": 1})
    source = flatten(branches_on_shape, kind)
    assert "absent" not in source.text
    assert "range(2)" in source.text
    state = SimpleNamespace(B=np.array([1.0, 2.0]), flag=1)
    assert run(source)([state], 3.0) == 9.0


@hook("twice")
def twice(state: Any) -> float:
    raise NotImplementedError


def _double(state: Any) -> float:
    return float(2.0 * state.x)


@kernel
def calls_hook(states: Any) -> float:
    return twice(states[0]) + 1.0


def test_a_hook_is_the_algorithms_function() -> None:
    kind = StateKind(shapes={"x": ()}, constants={}, hooks=SimpleNamespace(twice=_double))
    assert run(flatten(calls_hook, kind))([SimpleNamespace(x=4.0)]) == 9.0


def _scale(values: Any, factor: float) -> None:
    values *= factor


@vectorised(_scale)
def scale(values: Any, factor: float) -> None:
    """Multiply in place."""
    for i in range(values.shape[0]):
        values[i] *= factor


@kernel_noinline
def length(values: Any) -> float:
    total = 0.0
    for i in range(values.shape[0]):
        total += values[i] * values[i]
    return math.sqrt(total)


@kernel
def normalises(values: Any) -> None:
    scale(values, 1.0 / length(values))


def test_a_loop_is_compiled_where_numpy_is_interpreted() -> None:
    source = flatten(normalises, None)
    assert "*=" in source.text
    assert "for i_" in source.text
    values = np.array([3.0, 4.0])
    run(source)(values)
    np.testing.assert_array_equal(values, [0.6000000000000001, 0.8])


def test_keywords_and_strange_statements_are_refused_by_name() -> None:
    @kernel
    def has_keyword(x: float) -> float:
        return float(np.round(x, decimals=2))

    @kernel
    def has_try(x: float) -> float:
        try:
            return x
        finally:
            pass

    with pytest.raises(TypeError, match=r"np.round\(x, decimals=2\) has keywords"):
        flatten(has_keyword, None)
    with pytest.raises(TypeError, match="cannot be compiled, in has_try"):
        flatten(has_try, None)


def test_the_key_of_machine_code_changes_with_any_kernel_that_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = OTFLinUCB(3, 10)
    kind = state_kind(policy.algorithm, policy.state.record)
    before = code_key(decide_one, flatten(decide_one, kind).text, holds_gil=False)
    assert before == code_key(decide_one, flatten(decide_one, kind).text, holds_gil=False)
    assert before != code_key(decide_one, flatten(decide_one, kind).text, holds_gil=True)
    monkeypatch.setattr("latecomer.core.linalg.products.TIE", 2e-10)  # a constant, three calls below
    assert before != code_key(decide_one, flatten(decide_one, kind).text, holds_gil=False)


@kernel
def counts_slots(values: Any, added: Any) -> int:
    total = values.shape[0] + added.shape[0]
    added = values
    return int(total + values.shape[0] + added.shape[0])


def test_length_of_a_parameter_is_looked_up_once() -> None:
    """Not that of one which the function assigns: it may stand for another array later."""
    source = flatten(counts_slots, None)
    assert source.text.count("values.shape") == 1
    assert source.text.count("added.shape") == 2
    assert run(source)(np.ones(3), np.ones(5)) == 14
