"""Both tiers of every policy do the same to the last bit: plain Python, and machine code."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import policy_cases
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latecomer as lc
from latecomer.core.state import UNSTAMPED
from latecomer.policies.base import bulk
from latecomer.policies.base.conversion_kernels import apply_conversion_holding_gil, apply_conversions
from latecomer.policies.base.kernels import decide_one_holding_gil, is_admissible_holding_gil, record_many
from latecomer.policies.base.policy_code import PolicyCode
from latecomer.policies.recommended import constants

WINDOW = 12
DIM = 2
"""That of most other tests, which then find the machine code on disk."""

RANDOMISED: dict[str, Any] = {
    "floor": 0.1, "ceiling": 0.6, "draws": 9, "control": {"share": 0.2, "policy": "uniform"}, "seed": 7
}  # fmt: skip
BY_PROBABILITIES = " by probabilities"
LIMITED = f" limited{BY_PROBABILITIES}"
LIMITS = {"a": {"floor": 0.2}, "b": {"floor": 0.05, "ceiling": 0.3}}
FORGETTING = " forgetting"
UNFORGETTING = ("LogisticLinTS", "OTFLinUCB-variance")
GUARDED = " guarded"
CASES = [
    *policy_cases.EVERY_POLICY, "recommended", f"recommended{BY_PROBABILITIES}",
    f"Greedy{GUARDED}", f"recommended{GUARDED}{BY_PROBABILITIES}",
    *(f"{name}{FORGETTING}" for name in policy_cases.EVERY_POLICY if name not in UNFORGETTING),
    f"recommended{FORGETTING}{BY_PROBABILITIES}", f"recommended{FORGETTING}{LIMITED}",
    f"Greedy{FORGETTING}{LIMITED}",
]  # fmt: skip
LONG_DIM = 130
"""Beyond the dimensions of plain loops: BLAS and its triangles."""
WHOLE = "OTFLinTS-heuristic"
"""The policy of which more kernels are compiled than those of a decision and of a conversion."""

DIFFERENT = (
    (WHOLE, LONG_DIM),  # a draw, and BLAS
    (f"Greedy{FORGETTING}{LIMITED}", DIM),  # weights, chances, limits, a control
)
"""The kernels that have least in common; compiling one takes seconds, and the soak has every policy. A delay curve and
sets of actions are in the simulator's loop of `recommended`, test_simulated_tiers.py."""
EACH = [
    *DIFFERENT,
    *(pytest.param(name, DIM, marks=pytest.mark.soak) for name in CASES if (name, DIM) not in DIFFERENT),
]

LONGEST = [("OTFLinUCB-exact", 20), ("OTFLinUCB-variance", 20), ("recommended", 40)]
"""In the soak too: a factor that follows G."""


def make(name: str, dim: int) -> Any:
    given = RANDOMISED if name.endswith(BY_PROBABILITIES) else {}
    if name.endswith(LIMITED):
        given = {**given, "limits": LIMITS}
    name = name.removesuffix(LIMITED).removesuffix(BY_PROBABILITIES)
    if name.endswith(FORGETTING):
        name, given = name.removesuffix(FORGETTING), {**given, "half_life": 5}
    if name.endswith(GUARDED):
        name, given = name.removesuffix(GUARDED), {**given, "guard": 0.1}
    if name == "recommended" and "half_life" in given:  # with a low threshold, changes are detected by chance
        detecting = {**constants(dim), "false_alarms": 1.0, "seed": 7, **given, "half_life": 60}
        return lc.MaturedLinTS(dim, WINDOW, **detecting)
    if name == "recommended":
        return lc.recommended(dim, WINDOW, **{"seed": 7, **given})
    return policy_cases.make(name, dim, WINDOW, **given)


Functions = frozenset[Callable[..., Any]]
HOT: Functions = frozenset({decide_one_holding_gil, apply_conversion_holding_gil, is_admissible_holding_gil})
"""The kernels of a decision and of a conversion."""
REPLAYED: Functions = frozenset({*HOT, record_many, apply_conversions})
"""The kernels of a replay too."""


def kernels_of(name: str, dim: int) -> Functions | None:
    """Return the functions to compile, or None for all; the soak has all of every policy."""
    if name != WHOLE:
        return HOT
    return REPLAYED if dim == LONG_DIM else None


@cache
def compiled_code(name: str, dim: int, functions: Functions | None) -> PolicyCode:
    policy = make(name, dim)
    code = PolicyCode(policy.algorithm, policy.state.record, None)
    for kernel in code.tiered():
        if functions is None or kernel.function in functions:
            kernel.compile()
    return code


def twins(name: str, dim: int, functions: Functions | None) -> tuple[Any, Any]:
    """Return the same policy twice: one in plain Python, one with machine code of these kernels, or of all."""
    plain, compiled = make(name, dim), make(name, dim)
    plain.state.code = PolicyCode(plain.algorithm, plain.state.record, None)
    compiled.state.code = compiled_code(name, dim, functions)
    return plain, compiled


def assert_same(plain: Any, compiled: Any) -> None:
    ours, theirs = plain.state.arrays(), compiled.state.arrays()
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    assert plain.rng.state() == compiled.rng.state()


def chosen(decision: lc.Decision) -> tuple[Any, ...]:
    return decision.index, decision.score, decision.propensity, decision.is_control


def play(plain: Any, compiled: Any, events: list[tuple[str, int, int]], dim: int) -> None:
    for kind, seed, back in events:
        rng = np.random.default_rng(seed)
        round = max(1, plain.rounds + 1 - back)
        if kind == "decide":
            actions = policy_cases.unit_actions(rng, 1 + seed % 9, dim)
            places = {"a": 0, "b": len(actions) - 1} if plain.limited_ids and len(actions) > 1 else None
            ours, theirs = plain.decide(actions, places=places), compiled.decide(actions, places=places)
            assert chosen(ours) == chosen(theirs)
        elif kind == "many" and not plain.limited_ids:
            sets = np.stack([policy_cases.unit_actions(rng, 4, dim) for _ in range(1 + seed % 5)])
            ours, theirs = plain.decide_many(sets), compiled.decide_many(sets)
            assert list(map(chosen, ours)) == list(map(chosen, theirs))
        elif kind == "run" and not plain.limited_ids:
            sizes = 1 + np.arange(1 + seed % 5)
            rows = np.concatenate([policy_cases.unit_actions(rng, int(size), dim) for size in sizes])
            for mine, other in zip(
                *(bulk.decide_together(policy, rows, np.cumsum(sizes), at=None) for policy in (plain, compiled)),
                strict=True,
            ):
                np.testing.assert_array_equal(mine, other)
        elif kind == "convert":
            assert plain.convert(round, (seed % 5) / 4) == compiled.convert(round, (seed % 5) / 4)
        elif kind == "freeze":
            for policy in (plain, compiled):
                _ = policy.freeze() if seed % 2 else policy.unfreeze()
        elif kind == "revoke":
            assert plain.revoke(round) == compiled.revoke(round)
        elif kind == "replay":
            actions = policy_cases.unit_actions(rng, 1 + seed % 5, dim)
            summaries = np.stack([bulk.summarise(actions[i : i + 1]) for i in range(len(actions))])
            for policy in (plain, compiled):
                bulk.record(policy, actions, summaries, np.full(len(actions), UNSTAMPED))
        elif kind == "convert many":
            rounds = np.arange(round, round + 4)
            ours, theirs = (bulk.convert(p, rounds, np.full(4, 0.5), np.full(4, UNSTAMPED)) for p in (plain, compiled))
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.soak
def test_tiers_agree_on_a_suspicion_that_fades() -> None:
    given: dict[str, Any] = {**constants(DIM), "false_alarms": 1e-12, "half_life": 10_000, "seed": 1}
    plain, compiled = (lc.MaturedLinTS(DIM, 40, **given) for _ in range(2))
    for policy in (plain, compiled):
        policy.state.code = PolicyCode(policy.algorithm, policy.state.record, None)
    for kernel in compiled.state.code.tiered():
        if kernel.function in HOT:
            kernel.compile()
    suspected = []
    for t in range(180):
        actions = policy_cases.unit_actions(np.random.default_rng(t), 1, DIM)
        ours, theirs = plain.decide(actions), compiled.decide(actions)
        assert chosen(ours) == chosen(theirs)
        suspected.append(plain.state.number("suspected"))
        if (t < 100 and t % 2) or t >= 120:
            assert plain.convert(ours) is compiled.convert(theirs)
    assert len({*suspected}) > 1
    assert suspected[-1] == suspected[0]
    assert_same(plain, compiled)


KINDS = ["decide"] * 8 + ["convert"] * 5 + ["revoke", "many", "run", "replay", "convert many", "freeze"]
EVENTS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 10**6), st.integers(0, 2 * WINDOW)), max_size=60)


@pytest.mark.parametrize(("name", "dim"), [*EACH, *(pytest.param(*one, marks=pytest.mark.soak) for one in LONGEST)])
def test_tiers_agree_past_many_windows_and_take_over_from_each_other(name: str, dim: int, tmp_path: Path) -> None:
    compare(name, dim, tmp_path, kernels_of(name, dim))


@pytest.mark.parametrize(("name", "dim"), EACH)
@settings(max_examples=5, deadline=None)
@given(events=EVENTS)
def test_tiers_agree_on_any_events(name: str, dim: int, events: list[tuple[str, int, int]]) -> None:
    plain, compiled = twins(name, dim, kernels_of(name, dim))
    play(plain, compiled, events, dim)
    assert_same(plain, compiled)
    for reading in ("theta_hat", "width", "pending_width"):
        np.testing.assert_array_equal(getattr(plain, reading), getattr(compiled, reading))


IN_GRACE = ["OTFLinUCB-exact", "LogisticLinTS", "WaitingLinTS", "MaturedLinUCB", "ImputedLinTS", "recommended"]


@pytest.mark.parametrize(
    ("name", "dim"),
    [(WHOLE, LONG_DIM), *(pytest.param(name, DIM, marks=pytest.mark.soak) for name in IN_GRACE)],
)
def test_tiers_agree_on_conversions_in_the_grace(name: str, dim: int) -> None:
    """Ten seconds of window, twenty of grace: most of the conversions are of decisions that have closed."""
    parameters = constants(DIM) if name == "recommended" else {}
    case = "MaturedLinTS" if name == "recommended" else name
    plain, compiled = (policy_cases.make(case, dim, "10s", grace="20s", **parameters) for _ in range(2))
    plain.state.code = PolicyCode(plain.algorithm, plain.state.record, None)
    compiled.state.code = compiled_code(name, dim, kernels_of(name, dim))
    rng, straggled = np.random.default_rng(4), 0
    for t in range(1, 150):
        actions = policy_cases.unit_actions(rng, 3, dim)
        assert chosen(plain.decide(actions, at=float(t))) == chosen(compiled.decide(actions, at=float(t)))
        round, value = max(1, t - int(rng.integers(0, 35))), float(rng.random())
        occurred = float(round + rng.integers(-1, 12))
        verdict = plain.convert(round, value, at=occurred)
        assert verdict is compiled.convert(round, value, at=occurred)
        straggled += verdict is lc.Verdict.ACCEPTED and t - round > 10
        if t % 7 == 0:
            assert plain.revoke(round, at=float(t)) is compiled.revoke(round, at=float(t))
    assert straggled > 20
    assert_same(plain, compiled)


@pytest.mark.soak
@pytest.mark.parametrize("dim", [1, 3, 20, 40, 130])
@pytest.mark.parametrize("name", CASES)
def test_every_kernel_agrees_in_five_dimensions(name: str, dim: int, tmp_path: Path) -> None:
    compare(name, dim, tmp_path, functions=None)


@pytest.mark.soak
@pytest.mark.parametrize("dim", [2, 20])
@pytest.mark.parametrize("kind", [BY_PROBABILITIES, LIMITED])
@pytest.mark.parametrize("name", policy_cases.EVERY_POLICY)
def test_every_policy_agrees_by_probabilities(name: str, kind: str, dim: int, tmp_path: Path) -> None:
    compare(f"{name}{kind}", dim, tmp_path, functions=None)


def compare(name: str, dim: int, tmp_path: Path, functions: Functions | None) -> None:
    """Play the same events in both tiers, save one, and go on with each in the other tier."""
    rng = np.random.default_rng(dim)
    plain, compiled = twins(name, dim, functions)
    events = [(KINDS[i], int(rng.integers(10**6)), int(rng.integers(2 * WINDOW)))
              for i in rng.integers(len(KINDS), size=90)]  # fmt: skip
    play(plain, compiled, events, dim)
    assert_same(plain, compiled)
    plain.save(tmp_path / "plain")
    loaded: Any = lc.load(tmp_path / "plain")
    loaded.state.code, plain.state.code = compiled.state.code, loaded.state.code  # each goes on in the other tier
    play(loaded, plain, events, dim)
    assert_same(loaded, plain)
