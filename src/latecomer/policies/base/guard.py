"""The guard: any policy proposes an action, and a confidence set judges it.

With U(a) = ⟨a, φ̂⟩ + h(a)w(a) and L(a) = ⟨a, φ̂⟩ − h(a)w(a) of `latecomer.core.confidence_set`, the proposal Ã is
played where max_b U(b) − U(Ã) ≤ κ·(U(Ã) − L(Ã)), and argmax U otherwise. The bound of the variance-aware width then
holds for the guarded policy, up to a factor of 1 + κ (docs/explanation/theory/guard.md). Where the policy chooses by
probabilities, those of proposals that would be refused go to argmax U, so that propensities stay exact.
"""

from dataclasses import fields
from typing import Any

import numpy as np

from latecomer.core.confidence_set import (
    ROUND_FIELDS,
    absorb_closed_rounds,
    correct_round,
    estimate_phi,
    index_width,
    record_in_set,
    set_fields,
    set_numbers,
)
from latecomer.core.jit import kernel, kernel_noinline
from latecomer.core.linalg.products import argmax_first, row_dot
from latecomer.core.state import Array, ExtraFields, Ring, State
from latecomer.errors import InputError
from latecomer.policies.base.algorithm import Algorithm, suggest
from latecomer.policies.base.choice_probabilities import probabilities_of_samples
from latecomer.validation import check_nonnegative

RIDGE, DELTA = 1.0, 0.1
"""λ_H and δ of the set that judges."""


def check_guard(guard: float | None) -> dict[str, float]:
    """Return the parameter as a policy has it: {} where the guard is off."""
    return {} if guard is None else {"guard": check_nonnegative("guard", guard)}


def guard_numbers(parameters: dict[str, float]) -> dict[str, float]:
    """Return the numbers of the state that kernels read: none where the guard is off."""
    if not parameters:
        return {}
    return {**parameters, **set_numbers(RIDGE, DELTA, 1.0 + 2.0 * parameters["guard"])}


@kernel_noinline
def judge_actions(state: State, actions: Array, allowed: Array) -> int:
    """Fill in 1 for the actions that may be played, else 0; return argmax U."""
    count = actions.shape[0]
    widths = np.empty(count)
    estimate_phi(state)
    for k in range(count):
        widths[k] = index_width(state, actions[k])
        allowed[k] = row_dot(actions, k, state.set_phi) + widths[k]
    best = argmax_first(allowed)
    most = allowed[best]
    for k in range(count):
        allowed[k] = 1.0 if most - allowed[k] <= state.guard * 2.0 * widths[k] else 0.0
    allowed[best] = 1.0
    return best


@kernel
def move_to_allowed(allowed: Array, best: int, probabilities: Array) -> None:
    """Give the probability of every other action to the best one."""
    moved = 0.0
    for k in range(probabilities.shape[0]):
        if allowed[k] == 0.0:
            moved += probabilities[k]
            probabilities[k] = 0.0
    probabilities[best] += moved


def choose_guarded(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """Play the proposal where the set allows it; scores are the policy's own."""
    proposed = suggest(state, ring, actions, draws, scores)
    allowed = np.empty(actions.shape[0])
    best = judge_actions(state, actions, allowed)
    return proposed if allowed[proposed] > 0.0 else best


def choose_guarded_by_scores(state: State, ring: Ring, actions: Array, draws: Array, scores: Array) -> int:
    """Play the proposal where the set allows it; scores are probabilities, and those of other proposals are moved."""
    proposed = suggest(state, ring, actions, draws, scores)
    allowed = np.empty(actions.shape[0])
    best = judge_actions(state, actions, allowed)
    move_to_allowed(allowed, best, scores)
    return proposed if allowed[proposed] > 0.0 else best


def probabilities_of_guarded_samples(
    state: State, ring: Ring, actions: Array, draws: Array, scores: Array, out: Array
) -> None:
    """The shares of samples that each action wins, those of actions that are not allowed moved to argmax U."""
    probabilities_of_samples(state, ring, actions, draws, scores, out)
    allowed = np.empty(actions.shape[0])
    best = judge_actions(state, actions, allowed)
    move_to_allowed(allowed, best, out)


_guarded: dict[str, Algorithm] = {}
"""By the key of the algorithm that is guarded: policies of one kind share it, and so their kernels."""


class GuardedAlgorithm(Algorithm):
    """An algorithm whose proposals a confidence set judges; another process makes it of the same algorithm."""

    def __reduce__(self) -> Any:
        """Pickle the algorithm that is guarded."""
        return find_guarded, (self.guards,)


def find_guarded(algorithm: Algorithm) -> Algorithm:
    """Return the guarded form of an algorithm, the same object each time."""
    if algorithm.has_set:
        raise InputError(
            f"guard is for policies without a confidence set of their own; {algorithm.name} never proposes what its "
            "guard would refuse: leave guard out",
            field="guard",
        )
    if algorithm.key not in _guarded:
        _guarded[algorithm.key] = _make_guarded(algorithm)
    return _guarded[algorithm.key]


def _make_guarded(algorithm: Algorithm) -> Algorithm:
    def extra_fields(dim: int, span: int, ridge: float) -> ExtraFields:
        return {**algorithm.extra_fields(dim, span, ridge), **set_fields(dim, RIDGE)}

    own = {each.name: getattr(algorithm, each.name) for each in fields(algorithm) if each.init}
    changes = {
        "name": f"{algorithm.name}, guarded",
        "choose": choose_guarded_by_scores if algorithm.scores_are_probabilities else choose_guarded,
        "suggest": algorithm.choose,
        "guards": algorithm,
        "advance_set": absorb_closed_rounds,
        "record_in_set": record_in_set,
        "correct_set": correct_round,
        "round_fields": (*algorithm.round_fields, *ROUND_FIELDS),
        "extra_fields": extra_fields,
    }
    return GuardedAlgorithm(**{**own, **changes})
