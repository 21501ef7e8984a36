"""Players: a policy's run, whose rounds are compiled, or the run of a rule of one's own."""

from collections.abc import Callable, Mapping
from copy import copy
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from latecomer.core.state import ROUNDS_PER_BLOCK, Array, Integers
from latecomer.errors import InputError
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.policy_code import PolicyCode
from latecomer.simulation.kernel import group_arrivals, run_block, run_dependent_block, run_ragged_block
from latecomer.simulation.mean_rewards import mean_rewards
from latecomer.simulation.own_rule import OwnRule, RulePlayer, find_maker, make_sample
from latecomer.simulation.stages import StageDraws
from latecomer.simulation.world import Block, World
from latecomer.tiers.tiered_kernel import (
    WORTHWHILE_ROUNDS,
    Announce,
    Job,
    TieredKernel,
    compile_mode,
    request,
)

Template = LinearPolicy | OwnRule
"""A policy that has seen nothing, or what makes a rule."""


def check_template(name: str, given: object, world: World) -> Template:
    """Return what is played under a name; only parameters matter, and travel, not what a policy has seen."""
    if not isinstance(given, LinearPolicy):
        make = find_maker(name, given)
        given = make_sample(name, make)
        if not isinstance(given, LinearPolicy):
            return OwnRule(name, make)
    if given.dim != world.dim:
        raise InputError(f"policies[{name!r}] must have the world's dim, {world.dim}; got {given.dim}")
    if not isinstance(given.window, int):
        raise InputError(f"policies[{name!r}] must have its window in rounds, as the world has; got {given.window!r}")
    if given.stages and world.stage is not None:
        return OwnRule(name, partial(StagedRule, given))
    return given.fresh(0)


class StagedRule:
    """The run of a policy that has stages, in a world that has one: to the policy it is the first of its stages."""

    def __init__(self, policy: LinearPolicy, seed: int) -> None:
        self._policy = policy.fresh(seed)
        self.decide, self.convert = self._policy.decide, self._policy.convert

    def reach(self, round: int) -> None:
        """Report that a round has reached the stage."""
        self._policy.reach(round, self._policy.stages[0])


PLAIN_ROUNDS = 10_000
"""Fewer rounds of all policies together take less time as plain Python than it takes to compile one policy."""


def prepare(world: World, templates: Mapping[str, Template], rounds: int, announce: Announce | None = None) -> None:
    """Have machine code for so many rounds of each policy, where that is worth waiting for it.

    Where it is not, it is made in the background, and taken between two blocks of rounds.
    """
    for kernel in (mean_rewards, group_arrivals):
        kernel.prepare(rounds, announce)
    policies = [template for template in templates.values() if isinstance(template, LinearPolicy)]
    for policy in policies:
        kernel = find_block_kernel(policy, world)
        if kernel.is_compiled or kernel.is_requested or rounds < WORTHWHILE_ROUNDS:
            continue
        if compile_mode() == "auto" and rounds * len(policies) < PLAIN_ROUNDS and not kernel.is_on_disk:
            if announce is not None:
                announce(f"compiling {kernel.label} meanwhile; until then it runs as Python")
            request([kernel])
        else:
            kernel.prepare(rounds, announce)


def start(
    template: Template,
    generator: np.random.Generator,
    world: World,
    horizon: int,
    stages: StageDraws | None = None,
) -> "PolicyPlayer | RulePlayer":
    """Begin a run."""
    if isinstance(template, LinearPolicy):
        return PolicyPlayer(template, generator, find_block_kernel(template, world), horizon)
    return RulePlayer(template, generator, horizon, stages)


class PolicyPlayer:
    """A policy's run: a fresh state, and a generator of its own."""

    def __init__(
        self, policy: LinearPolicy, generator: np.random.Generator, kernel: TieredKernel, horizon: int
    ) -> None:
        self._kernel = kernel
        room = min(horizon, policy.span + 2 + ROUNDS_PER_BLOCK)  # then a round closes in every round
        self._dim, self._state = policy.dim, policy.state.make_empty(room)
        self._rng = copy(policy.rng)
        self._rng.generator = generator
        self.converts = np.zeros(horizon, np.bool_)
        self._queue = np.zeros(horizon, np.int64), np.zeros(horizon, np.int64)
        """Heads and links of what is to arrive, where delays depend on the action"""

    def play(
        self,
        block: Block,
        first: int,
        *,
        uniforms: Array,
        delays: Integers,
        arrivals: tuple[Integers, Integers],
        regret: Array,
    ) -> None:
        """Play a stretch of rounds; what arrives when is in `arrivals`, unless delays depend on the action."""
        factors = block.delay_factors
        self._kernel(
            self._state.record,
            self._state.ring,
            block.actions,
            block.action_means,
            block.offers,
            self._rng.draws(len(block.offers), self._dim),
            first,
            uniforms,
            *(arrivals if factors is None else (delays, factors, *self._queue)),
            self.converts,
            regret,
        )


def find_block_kernel(policy: LinearPolicy, world: World) -> TieredKernel:
    """Return the simulator's loop for a policy's kind; another one for a world whose sets differ in size."""
    if world.delay_slope is not None:
        return _find_loop(policy, run_dependent_block)
    return _find_loop(policy, run_ragged_block if world.is_ragged else run_block)


def _find_loop(policy: LinearPolicy, function: Callable[..., None]) -> TieredKernel:
    draw_count = policy.rng.draws(0, policy.dim).shape[1]
    return _make_block_kernel(policy.state.code, function, policy.dim, int(draw_count))


_CONSTANTS = {"grace": 0, "frozen": 0}
"""Numbers of every state that is simulated: a window in rounds has no grace, and a template learns."""


@cache
def _make_block_kernel(code: PolicyCode, function: Callable[..., None], dim: int, draw_count: int) -> TieredKernel:
    counts, numbers, flags = np.ones(1, np.int64), np.ones(1), np.ones(1, np.bool_)
    actions, offers, draws = np.ones((1, dim)), np.ones((1, 1), np.int32), np.empty((0, draw_count))
    arrivals = (counts, numbers, counts, counts) if function is run_dependent_block else (counts, counts)
    job = code.job and Job(__name__, compile_block.__name__, {**code.job.arguments, "loop": function.__name__})
    examples = (actions, numbers, offers, draws, 0, numbers, *arrivals, flags, numbers)
    return code.kernel(function, *examples, constants=_CONSTANTS, job=job)


_LOOPS = {function.__name__: function for function in (run_block, run_ragged_block, run_dependent_block)}


def compile_block(module: str, policy: str, parameters: dict[str, Any], loop: str, kernels: list[str]) -> None:
    """Compile a loop for a policy by name, in a process that does it for another (`latecomer.tiers.background`)."""
    made = getattr(import_module(module), policy)(**parameters)
    _find_loop(made, _LOOPS[loop]).compile()
