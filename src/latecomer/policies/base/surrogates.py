"""Stages as surrogates: a policy sees sooner where a click, or a cart, foretells the conversion. A heuristic.

Of all rounds so far, those that reached stage j are credited with r_j on average, the others with q_j; both are
estimated with a prior, the mean of all, that weighs as much as `stage_prior` rounds. Conversions that are still on
their way make both smaller by their maturity: a surrogate begins small, and grows to its value as rounds close. A round
that reaches the stage is credited with u_j = r_j − q_j at once, as if it were its conversion: B and the delay curve
take it. The conversion replaces it when it comes, and where the window closes without one it is taken back. A
difference that is not above two standard errors is no surrogate: then nothing happens, and nothing is lost. A credit is
in [0, 1], so that the variance of a mean p is at most p(1 − p).

Until its window closes a round that has reached a stage counts as u_j, also late, when it has become less likely to
convert. That is the same for all actions where r_j is; no correction is made for it.
"""

import heapq
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer.errors import InputError
from latecomer.validation import check_positive, short_repr, suggest, to_plain_text

MOST_STAGES = 16
"""Stages of a policy, or of a bandit."""
DEFAULT_PRIOR = 10.0
"""Rounds that the prior of a stage's rates weighs as much as."""
STAGE_NAME = re.compile(r"[A-Za-z0-9._-]{1,32}")
_ERRORS = 2.0
"""Standard errors by which rates must differ."""
_LEAST = 1024
"""Rounds in a table before it is looked through for forgotten ones."""


class StageRates(NamedTuple):
    """Rounds that reached a stage, and the others; the sum of the credits of each; the surrogate that follows."""

    reached: int
    reached_credit: float
    others: int
    other_credit: float
    surrogate: float


def parse_stages(stages: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of stages; none where it is None. `InputError` where one is no name, or is there twice."""
    if stages is None:
        return ()
    if isinstance(stages, str) or not isinstance(stages, Sequence):
        raise InputError(
            f"stages must be a list of names, as ['click', 'cart']; got {short_repr(stages)}", field="stages"
        )
    for place, stage in enumerate(stages):
        if not isinstance(stage, str) or not STAGE_NAME.fullmatch(stage):
            raise InputError(
                f"stages must be names of 1 to 32 letters, digits, '.', '_' or '-'; got {short_repr(stage)}",
                field="stages",
            )
        if stage in stages[:place]:
            raise InputError(f"stages must be different; got {stage!r} twice", field="stages")
    if len(stages) > MOST_STAGES:
        raise InputError(f"stages must be at most {MOST_STAGES}; got {len(stages)}", field="stages")
    return tuple(map(to_plain_text, stages))


def make_surrogates(stages: Sequence[str] | None, prior: float) -> "SurrogateTable | None":
    """Make the table of a policy; None where it has no stages."""
    names, weight = parse_stages(stages), check_positive("stage_prior", prior)
    if not 1e-9 <= weight <= 1e9:
        raise InputError(
            f"stage_prior must be between 1e-9 and 1e9 rounds; got {prior!r}, 10 is usual", field="stage_prior"
        )
    return SurrogateTable(names, weight) if names else None


class SurrogateTable:
    """The stages that rounds have reached, the surrogates that open rounds are credited with, and the rates."""

    def __init__(self, names: tuple[str, ...], prior: float) -> None:
        self.names, self.prior = names, prior
        self.active: dict[int, float] = {}
        """By open round, the surrogate that it is credited with."""
        self._first: list[int] = []
        """A heap of the rounds that have a surrogate, or had one."""
        self._reached: dict[int, int] = {}
        """By round that may still change, a bit for each stage."""
        self._sums = [[0.0, 0.0] for _ in names]
        """By stage, rounds that reached it, and the sum of their credits."""
        self._credits = 0.0
        self._limit = _LEAST

    def make_empty(self) -> "SurrogateTable":
        """Make a table of the same stages that has seen nothing."""
        return SurrogateTable(self.names, self.prior)

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments that make it, as a policy's parameters have them."""
        return {"stages": list(self.names), "stage_prior": self.prior}

    # ---- rates ----

    def find_rates(self, stage: str, rounds: int) -> StageRates:
        """Return the rates of a stage, after so many rounds."""
        count, reached_credit = self._sums[self._slot(stage)]
        reached = int(count)
        others, other_credit = rounds - reached, self._credits - reached_credit
        surrogate = 0.0
        if reached and others:
            mean = self._credits / rounds
            rate = (reached_credit + self.prior * mean) / (reached + self.prior)
            without = (other_credit + self.prior * mean) / (others + self.prior)
            variance = max(rate * (1.0 - rate), 0.0) / reached + max(without * (1.0 - without), 0.0) / others
            surrogate = rate - without if rate - without > _ERRORS * math.sqrt(variance) else 0.0
        return StageRates(reached, reached_credit, others, other_credit, surrogate)

    def _slot(self, stage: str) -> int:
        if stage not in self.names:
            raise InputError(
                f"stage must be one of {', '.join(self.names)}; got {short_repr(stage)}{suggest(stage, self.names)}",
                field="stage",
            )
        return self.names.index(stage)

    # ---- events ----

    def has_reached(self, round_: int, stage: str) -> bool:
        """Tell whether a round has reached a stage."""
        return bool(self._reached.get(round_, 0) >> self._slot(stage) & 1)

    def add_stage(self, round_: int, stage: str, credit: float) -> None:
        """Note that a round of that credit has reached a stage."""
        slot = self._slot(stage)
        self._reached[round_] = self._reached.get(round_, 0) | 1 << slot
        self._sums[slot][0] += 1.0
        self._sums[slot][1] += credit

    def add_credit(self, round_: int, change: float) -> None:
        """Note that the credit of a round, surrogates apart, has changed."""
        self._credits += change
        reached = self._reached.get(round_, 0)
        for slot in range(len(self.names)):
            if reached >> slot & 1:
                self._sums[slot][1] += change

    def begin_surrogate(self, round_: int, surrogate: float) -> None:
        """Note the surrogate that an open round is credited with, in place of a smaller one."""
        if round_ not in self.active:
            heapq.heappush(self._first, round_)
        self.active[round_] = surrogate

    def find_first(self) -> int | None:
        """Return the first round that has a surrogate."""
        while self._first and self._first[0] not in self.active:
            heapq.heappop(self._first)
        return self._first[0] if self._first else None

    @property
    def is_full(self) -> bool:
        """Tell whether it is time to forget rounds."""
        return len(self._reached) > self._limit

    def forget(self, is_kept: Callable[[int], bool]) -> None:
        """Forget rounds whose credit cannot change any more."""
        self._reached = {round_: bits for round_, bits in self._reached.items() if is_kept(round_)}
        self._limit = max(_LEAST, 2 * len(self._reached))

    # ---- files ----

    def arrays(self, is_kept: Callable[[int], bool]) -> dict[str, npt.NDArray[Any]]:
        """Return the table by name, without rounds that may be forgotten."""
        reached = [pair for pair in sorted(self._reached.items()) if is_kept(pair[0])]
        active = sorted(self.active.items())
        return {
            "stages/sums": np.array([[0.0, self._credits], *self._sums]),
            "stages/reached": np.array(reached, np.int64).reshape(len(reached), 2),
            "stages/open_rounds": np.array([round_ for round_, _ in active], np.int64),
            "stages/surrogates": np.array([surrogate for _, surrogate in active]),
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]], open_rounds: range) -> None:
        """Become the table whose `arrays` these are; `ValueError` where they do not fit together."""
        sums, reached, rounds, surrogates = (
            arrays[f"stages/{name}"] for name in ("sums", "reached", "open_rounds", "surrogates")
        )
        shapes = ((len(self.names) + 1, 2), (len(reached), 2), (len(surrogates),))
        if (sums.shape, reached.shape, rounds.shape) != shapes or not np.isfinite(sums).all():
            raise ValueError("its stages do not fit together")
        is_of_open = all(round_ in open_rounds for round_ in rounds.tolist())
        if not (is_of_open and ((surrogates > 0.0) & (surrogates <= 1.0)).all()):
            raise ValueError("its surrogates are not of open rounds")
        self._reached = dict(reached.tolist())
        self.active = dict(zip(rounds.tolist(), surrogates.tolist(), strict=True))
        self._first = sorted(self.active)
        self._credits, self._sums = float(sums[0, 1]), sums[1:].tolist()
        self._limit = max(_LEAST, 2 * len(self._reached))
