"""Rules of one's own in a simulation: whatever runs today, beside the policies, with the same random numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.errors import InputError
from latecomer.simulation.stages import StageDraws
from latecomer.simulation.world import Block
from latecomer.validation import short_repr


class Rule(Protocol):
    """The interface of a rule: two methods, called in the order in which things happen.

    It is not for several threads: each run has a rule of its own. In a world with a stage a rule that has a method
    `reach(round)` is told of rounds that reach it.

    Examples
    --------
    >>> import numpy as np
    >>> import latecomer as lc
    >>> class Popular:
    ...     '''The first action in one round of ten, and the one that has converted most in the others.'''
    ...     def __init__(self):
    ...         self.chosen, self.conversions = [], np.zeros(2)
    ...     def decide(self, actions):
    ...         self.chosen.append(0 if len(self.chosen) % 10 == 0 else int(self.conversions.argmax()))
    ...         return self.chosen[-1]
    ...     def convert(self, round):
    ...         self.conversions[self.chosen[round - 1]] += 1
    >>> world = lc.World(theta=[0.2, 0.4], actions=lc.actions.UnitVectors(), delays=lc.delays.Geometric(mean=10))
    >>> result = lc.simulate(world, {"popular": Popular, "ours": lc.recommended(2, 30)}, horizon=200, runs=3)
    >>> result.policies
    ['popular', 'ours']
    """

    def decide(self, actions: Array) -> Any:
        """Choose one of the (K, d) actions: return its index, or a record with `index` and `round`."""

    def convert(self, round: Any) -> object:
        """Learn that a round has converted: the decision's own `round`, or its number, from 1, where it had none."""


class FreshRule(Protocol):
    """A rule, or anything else, that makes a new rule for each run."""

    def fresh(self, seed: int) -> Rule:
        """Make a rule that has seen nothing; the same seed, from 0 to 2³² − 1, makes the same rule."""


@dataclass(frozen=True, eq=False)
class OwnRule:
    """A template: it makes a rule for each run, from a seed."""

    name: str
    make: Callable[[int], Rule]


def find_maker(name: str, given: Any) -> Callable[[int], Any]:
    """Return a function that makes a rule of a seed; refuse what cannot be made anew for each run."""
    if not isinstance(given, type) and callable(getattr(given, "fresh", None)):
        return given.fresh  # type: ignore[no-any-return]
    if callable(given):
        return _WithoutSeed(given)
    remedy = (
        "it plays one run and would begin the next with what it has learnt: give its class, or a function that makes it"
        if _is_rule(given)
        else "a function without arguments that makes a rule, a class, or an object with fresh(seed) will do too"
    )
    raise InputError(
        f"policies[{name!r}] must be a Latecomer policy, such as OTFLinUCB(...), or make a rule for each run; "
        f"got {short_repr(given)}: {remedy}"
    )


@dataclass(frozen=True)
class _WithoutSeed:
    """A function without arguments, called with a seed."""

    function: Callable[[], Any]

    def __call__(self, seed: int) -> Any:  # noqa: ARG002 - a maker's signature
        """Make a rule."""
        return self.function()


def make_sample(name: str, make: Callable[[int], Any]) -> Any:
    """Make a rule to see that it is one, and that the next is another."""
    try:
        made, other = make(0), make(0)
    except TypeError as error:
        raise InputError(
            f"policies[{name!r}] must make a rule when it is called without arguments, or by fresh(seed); got {error}"
        ) from error
    if not _is_rule(made):
        raise InputError(
            f"policies[{name!r}] must make a rule with decide(actions) and convert(round); got {short_repr(made)}"
        )
    if made is other:
        raise InputError(
            f"policies[{name!r}] must make a new rule at every call, for each run needs its own; "
            f"got {short_repr(made)} twice"
        )
    return made


def _is_rule(made: Any) -> bool:
    return all(callable(getattr(made, method, None)) for method in ("decide", "convert"))


class RulePlayer:
    """A rule's run, in plain Python: decide, then learn what arrives, as compiled rounds do."""

    def __init__(
        self, template: OwnRule, generator: np.random.Generator, horizon: int, stages: StageDraws | None = None
    ) -> None:
        self._name = template.name
        self._rule = template.make(int(generator.integers(2**32)))
        self._open: dict[int, Any] = {}
        """Rounds that convert, from 0, with what `convert` is to be told of them."""
        self.converts = np.zeros(horizon, np.bool_)
        self._to_arrive: dict[int, list[int]] = {}
        """Rounds by the round in which they arrive, where delays depend on the action."""
        self._stages = stages if callable(getattr(self._rule, "reach", None)) else None
        self._to_reach: dict[int, list[Any]] = {}
        """By round, what `reach` is to be told of those that reach the stage then."""

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
        starts, order = arrivals
        total = float(regret[first - 1]) if first > 0 else 0.0
        for i in range(len(block.offers)):
            t, rows = first + i, block.rows_of(i)
            means = block.action_means[rows]
            index, token = self._read(self._rule.decide(block.actions[rows]), t + 1, len(rows))
            total += float(means.max()) - float(means[index])
            regret[t] = total
            if uniforms[t] < means[index]:
                self.converts[t], self._open[t] = True, token
                if block.delay_factors is not None:
                    late = t + math.floor(float(delays[t]) * float(block.delay_factors[rows[index]]))
                    self._to_arrive.setdefault(late, []).insert(0, t)  # the latest first, as in compiled rounds
            if self._stages is not None:
                self._reach(self._stages, t, float(means[index]), token, int(delays[t]))
            arriving = order[starts[t] : starts[t + 1]].tolist()
            for arrived in arriving if block.delay_factors is None else self._to_arrive.pop(t, []):
                if self.converts[arrived]:
                    self._rule.convert(self._open.pop(arrived))

    def _reach(self, stages: StageDraws, t: int, mean: float, token: Any, delay: int) -> None:
        """Note when a round reaches the stage; tell the rule of those that do now."""
        reached = stages.find_arrival(t, mean, converts=bool(self.converts[t]), delay=delay)
        if reached is not None:
            self._to_reach.setdefault(reached, []).append(token)
        for each in self._to_reach.pop(t, []):
            self._rule.reach(each)  # type: ignore[attr-defined]

    def _read(self, decision: Any, round: int, count: int) -> tuple[int, Any]:
        """Return the index, and what to tell of the round."""
        is_record = hasattr(decision, "index") and not callable(decision.index)  # a tuple's is a method
        index = decision.index if is_record else decision
        if isinstance(index, bool | np.bool_) or not isinstance(index, Integral) or not 0 <= int(index) < count:
            raise InputError(
                f"policies[{self._name!r}].decide must return an index from 0 to {count - 1}, or a record with one; "
                f"got {short_repr(decision)} in round {round}"
            )
        return int(index), getattr(decision, "round", round) if is_record else round
