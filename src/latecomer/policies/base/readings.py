"""The readings of a policy: numbers and copies, which change nothing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import numpy as np
import numpy.typing as npt

from latecomer.core.state import Array, FieldKind
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import check_actions, explain_inadmissible
from latecomer.policies.base.algorithm import Algorithm
from latecomer.policies.base.assessment import Assessor
from latecomer.policies.base.clock import WindowClock
from latecomer.policies.base.compiled_state import CompiledState
from latecomer.policies.base.covariance import estimate_covariance
from latecomer.policies.base.delay_band import estimate_delay_band
from latecomer.policies.base.limits import place_limits
from latecomer.policies.base.randomisation import Randomisation
from latecomer.policies.base.rng import PolicyRng
from latecomer.timestamps import Moment
from latecomer.validation import check_probability


class PolicyReadings:
    """The statistics of a policy, as its users see them."""

    state: CompiledState
    limited_ids: tuple[str, ...]
    """The ids of the actions that have limits."""
    algorithm: Algorithm
    rng: PolicyRng
    _randomisation: Randomisation
    _assessor: Assessor | None = None
    _dim: int
    _window: int | timedelta
    _grace: timedelta
    _clock: WindowClock

    @property
    def dim(self) -> int:
        """d, the number of features of an action."""
        return self._dim

    @property
    def window(self) -> int | timedelta:
        """m, the window: rounds, or a time."""
        return self._window

    @property
    def span(self) -> int:
        """The window in the unit of stamps: rounds, or microseconds."""
        return self._clock.span

    @property
    def grace(self) -> timedelta:
        """The time after its window in which a decision still takes conversions that occurred inside the window."""
        return self._grace

    @property
    def rounds(self) -> int:
        """The number of decisions made."""
        return int(self.state.number("rounds"))

    @property
    def latest_stamp(self) -> int:
        """The stamp of the latest decision: its round, or microseconds since 1970."""
        return self._now

    @property
    def pending(self) -> int:
        """The number of decisions that would be credited if they converted now; in time, with the latest decision."""
        surrogates = self.state.surrogates
        return int(self.state.number("pending")) + (0 if surrogates is None else len(surrogates.active))

    @property
    def V(self) -> Array:
        """V = λI + Σ A_s A_sᵀ, a copy."""
        return self.state.array("V")

    @property
    def V_inv(self) -> Array:
        """V⁻¹, a copy."""
        return self.state.array("V_inv")

    @property
    def B(self) -> Array:
        """B = Σ Ỹ_s A_s, a copy."""
        return self.state.array("B")

    @property
    def log_det(self) -> float:
        """The logarithm of det(V)/λ^d."""
        return float(self.state.number("log_det"))

    @property
    def theta_hat(self) -> Array:
        """θ̂ = V⁻¹B, Eq. 1, or the policy's own estimate in its place, as of the next round.

        It estimates τ_m·θ: how many conversions the window loses cannot be known from inside it.
        """
        return self.state.theta_hat(self._next_stamp)

    @property
    def covariance(self) -> Array:
        """The covariance of θ̂, v̂·V⁻¹ or with the policy's own Gram matrix, as of the latest round. A heuristic."""
        return estimate_covariance(self.state)

    @property
    def width(self) -> float:
        """The algorithm's width (α_t or β_t) as of the next round; in time, as if it came with the latest one."""
        return self.state.width(self._next_stamp)

    @property
    def pending_width(self) -> float:
        """W_t, the part of the width that is due to rounds that may still convert."""
        return self.state.pending_width(self._next_stamp)

    @property
    def certificate(self) -> float | None:
        """C_t, where the policy has a confidence set: τ_m·R(t) is at most this, with probability 1 − δ; else None.

        That is, so many conversions within the window have been lost against the best actions, at the most. It holds
        for the rounds that the policy chose by its own rule, with `exploration` of at least 1: it is None where a
        floor, samples or a control choose, or where surrogates stand for values (`stages`), and rounds that were learnt
        from a log are added as if they were its own.
        """
        state, numbers = self.state, self.state.record.dtype.names or ()
        is_own = not self.algorithm.is_randomised and ("set_reach" in numbers and state.number("set_reach") >= 1.0)
        is_own = is_own and state.surrogates is None
        return float(state.number("certificate")) if is_own else None

    @property
    def delay_curve(self) -> tuple[Array, Array] | None:
        """F̂_m, where it is estimated: ages in the window's unit, and the share of observable conversions by then."""
        edges, curve = self.state.find_array(FieldKind.BIN_EDGES), self.state.find_array(FieldKind.DELAY_CURVE)
        if edges is None or curve is None:
            return None
        return edges.astype(np.float64) / (1 if self._clock.in_rounds else 1e6), curve

    def delay_band(self, level: float = 0.9) -> tuple[Array, Array] | None:
        """The confidence band of `delay_curve` at the same ages, low and high, where the policy counts delays.

        It comes from the counts alone; the curve has a prior, and may be outside where they say little.
        """
        return estimate_delay_band(self.state, check_probability("level", level, usual=0.9))

    def scores(self, actions: npt.ArrayLike, *, at: Moment | None = None) -> Array:
        """Return the actions' scores as the next decision would have them, a sampler's without its noise: (K,).

        Nothing is recorded. `at` is as in `decide`.
        """
        return self._assess(actions, at)[0]

    def probabilities(
        self,
        actions: npt.ArrayLike,
        *,
        at: Moment | None = None,
        control: int | None = None,
        places: Mapping[str, int] | None = None,
        draws: int = 1024,
    ) -> Array:
        """Return the probability of each action in the next decision: (K,).

        Nothing is recorded. `at`, `control` and `places` are as in `decide`. Where the policy chooses by known
        probabilities (`floor`, `draws`, `control`) these are exactly the next decision's. Of a sampler that does not,
        they are estimated from so many `draws`.
        """
        return self._assess(actions, at, control=control, places=places, draws=draws)[1]

    @property
    def bounds_actions(self) -> bool:
        """Tell whether it has a ceiling, or limits of single actions: a choice then takes all probabilities at once."""
        return self._randomisation.bounds_actions

    @contextmanager
    def _placed_limits(self, places: Mapping[str, int] | None, count: int) -> Iterator[None]:
        """Note where limited actions are in a set of so many actions, for as long as it is decided about."""
        if places and not self.limited_ids:
            raise InputError("places is for a policy with limits; leave it out", field="places")
        if not places:
            yield
            return
        try:
            place_limits(self.state.record, self._randomisation.limits, places, count)
            yield
        finally:
            place_limits(self.state.record, self._randomisation.limits, None, count)

    def _assess(
        self,
        actions: npt.ArrayLike,
        at: Moment | None,
        *,
        control: int | None = None,
        places: Mapping[str, int] | None = None,
        draws: int = 1024,
    ) -> tuple[Array, Array]:
        actions = check_actions(actions, self._dim)
        if not self.state.is_admissible(actions):
            raise explain_inadmissible(actions)
        asked = Randomisation.check(0.0, draws, None)
        index = None if control is None else self._randomisation.check_index(control, len(actions))
        unstamped = at is None and self._clock.in_rounds
        stamp = self._next_stamp if unstamped else self._clock.decision_stamp(at, now=self._now, rounds=self.rounds)
        wanted = self._randomisation if self.algorithm.is_randomised else asked
        if self._assessor is None or self._assessor.draws != wanted.draws:
            self._assessor = Assessor(self.state, self.algorithm, wanted)
        with self._placed_limits(places, len(actions)):
            return self._assessor.assess(self.state, self.rng, actions, stamp=stamp, control=index)

    @property
    def _now(self) -> int:
        return int(self.state.number("now"))

    @property
    def _next_stamp(self) -> int:
        return self.rounds + 1 if self._clock.in_rounds else self._now
