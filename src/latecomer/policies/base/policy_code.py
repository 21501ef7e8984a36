"""The kernels of one kind of policy (algorithm, dimension, flags), in whichever tier they are; policies share them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.action_summary import Shorts, summarise_actions
from latecomer.core.conversions import judge_conversion_of
from latecomer.core.jit import kernel_holding_gil
from latecomer.core.linalg.blas import one_thread
from latecomer.core.linalg.products import UNROLLED
from latecomer.core.state import UNSTAMPED, Array, block_dtype, new_ring
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.conversion_kernels import (
    apply_conversion_holding_gil,
    apply_conversions,
    apply_correction,
    apply_revocation,
)
from latecomer.policies.base.kernels import (
    choose_one,
    decide_many,
    decide_one,
    decide_one_holding_gil,
    is_admissible_holding_gil,
    next_estimate,
    next_pending_width,
    next_width,
    record_many,
)
from latecomer.policies.base.rng import draw_count
from latecomer.tiers.source import StateKind
from latecomer.tiers.tiered_kernel import Job, TieredKernel, request

Record = npt.NDArray[Any]

is_admissible = TieredKernel(is_admissible_holding_gil, lambda: (np.empty((1, 1)), 1), label="the check of actions")
"""is_admissible(actions, dim): the same for every dimension."""


@kernel_holding_gil
def summarise_holding_gil(actions: Array, summary: Shorts) -> None:
    """Fill in the summary of a set, without releasing Python's lock."""
    summarise_actions(actions, summary)


summarise = TieredKernel(
    summarise_holding_gil, lambda: (np.empty((1, 1)), np.empty(3, np.int16)), label="the summary of actions"
)
"""summarise(actions, summary): for sets of any size, which an array's type does not carry."""


def state_kind(algorithm: Algorithm, record: Record) -> StateKind:
    """Describe what all states of a policy's kind have in common."""
    fields: Mapping[str, Any] = record.dtype.fields or {}
    return StateKind(
        shapes={name: fields[name][0].shape for name in (record.dtype.names or ())[1:]},
        constants={name: int(record[name][0]) for name in ("refresh_norms", "learn_on_close", "forgets")},
        hooks=algorithm,
    )


class PolicyCode:
    """The kernels of one kind of state. Each attribute is called like the kernel that it is named after."""

    def __init__(self, algorithm: Algorithm, record: Record, job: Job | None) -> None:
        dim = record["B"].shape[1]
        self._dim, self.job, self._label = dim, job, f"{algorithm.name} for d = {dim}"
        self._kind, self._empty = state_kind(algorithm, record), record.copy()
        self._draws = draw_count(algorithm.draw, dim) + algorithm.is_randomised
        self._others: dict[Callable[..., Any], TieredKernel] = {}
        one = None if self._draws == 0 else np.empty(self._draws)
        self._block = block_dtype(dim, algorithm.round_fields)
        states, ring, rounds = self._empty, new_ring(self._block), np.ones(1, np.int64)
        decision = (states, ring, np.empty((1, dim)), UNSTAMPED, one)
        many = np.empty((1, self._draws))
        conversion = (states, ring, 1, 1.0, UNSTAMPED, UNSTAMPED)
        limit = one_thread if dim > UNROLLED else _as_it_is  # short actions need no BLAS

        self.decide_small: Any = self._add("decide_small", decide_one_holding_gil, decision)
        """On a set that is not large: (index, round, score)."""
        self.decide_large: Any = self._add("decide_large", decide_one, decision, one_thread)
        self.choose_one: Any = self._add("choose_one", choose_one, decision, limit)
        """On an admissible set, nothing is recorded: (index, score)."""
        self.convert: Any = self._add("convert", apply_conversion_holding_gil, conversion)
        self.decide_small.companions = [self.convert, is_admissible]
        numbers, summaries = np.empty(1), np.empty((1, dim + 2), np.int16)
        sets = (states, ring, np.empty((1, dim)), rounds, rounds, many, rounds, numbers, numbers, summaries)
        self.decide_many: Any = self._add("decide_many", decide_many, sets, limit)
        log = (states, ring, np.empty((1, dim)), summaries, rounds, many)
        self.record_many: Any = self._add("record_many", record_many, log, limit)
        conversions = (states, ring, rounds, numbers, rounds, rounds, rounds, rounds)
        self.convert_many: Any = self._add("convert_many", apply_conversions, conversions)
        self.revoke: Any = self._add("revoke", apply_revocation, (states, ring, 1, UNSTAMPED, UNSTAMPED))
        self.correct: Any = self._add("correct", apply_correction, (states, ring, 0, True, 1.0))
        self.judge: Any = self._add("judge", judge_conversion_of, (states, ring, 1, UNSTAMPED))
        for name, function in (
            ("next_width", next_width), ("next_pending_width", next_pending_width), ("next_estimate", next_estimate),
        ):  # fmt: skip
            setattr(self, name, self._add(name, function, (states, ring, UNSTAMPED)))

    next_width: Any
    next_pending_width: Any
    next_estimate: Any

    def _add(
        self,
        name: str,
        function: Callable[..., Any],
        examples: tuple[Any, ...],
        wrap: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    ) -> TieredKernel:
        return TieredKernel(
            function,
            lambda: examples,
            kind=self._kind,
            label=self._label,
            job=self.job,
            wrap=wrap or _as_it_is,
            install=lambda code: setattr(self, name, code),
        )

    def kernel(
        self,
        function: Callable[..., Any],
        *examples: Any,
        constants: Mapping[str, float] | None = None,
        job: Job | None = None,
    ) -> TieredKernel:
        """Return another kernel over this kind of state; `examples` are its arguments after the state and the ring.

        `constants` are numbers that its states have in common besides: fewer branches are compiled.
        """
        if function not in self._others:
            arguments = (self._empty, new_ring(self._block), *examples)
            kind = replace(self._kind, constants={**self._kind.constants, **(constants or {})})
            self._others[function] = TieredKernel(function, lambda: arguments, kind=kind, label=self._label, job=job)
        return self._others[function]

    def tiered(self) -> Iterable[TieredKernel]:
        """Return the kernels that are not compiled yet."""
        return [is_admissible, summarise, *(entry for entry in vars(self).values() if isinstance(entry, TieredKernel))]

    def warm_up(self) -> None:
        """Have the kernels of a service made in the background before they are hot; then that of its next restart."""
        for kernels in ((self.decide_small, self.convert_many, is_admissible, summarise), (self.record_many,)):
            request([kernel for kernel in kernels if isinstance(kernel, TieredKernel)])


def _as_it_is(code: Callable[..., Any]) -> Callable[..., Any]:
    return code


_codes: dict[Any, PolicyCode] = {}


def find_policy_code(algorithm: Algorithm, record: Record, job: Job | None) -> PolicyCode:
    """Return the kernels of a state's kind, the same for all policies of it."""
    key = (record.dtype, int(record["refresh_norms"][0]), int(record["learn_on_close"][0]))
    found = _codes.get(key)
    if found is None:
        found = _codes[key] = PolicyCode(algorithm, record, job)
    return found


def compile_policy(module: str, policy: str, parameters: dict[str, Any], kernels: list[str]) -> None:
    """Compile kernels of a policy by name, in a process that does it for another (`latecomer.tiers.background`)."""
    made = getattr(import_module(module), policy)(**parameters)
    for kernel in made.state.code.tiered():
        if kernel.function.__name__ in kernels:
            kernel.compile()


def job_for(policy: type, dim: int, options: Mapping[str, Any]) -> Job | None:
    """Return how another process compiles for a policy's class; None where it could not import the class."""
    if policy.__module__ == "__main__" or "." in policy.__qualname__:
        return None
    parameters = {"dim": dim, "window": 1, **options}
    arguments = {"module": policy.__module__, "policy": policy.__name__, "parameters": parameters}
    return Job(__name__, compile_policy.__name__, arguments)
