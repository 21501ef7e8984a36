"""The policies beyond the paper straight from the definitions: everything from the history in every round."""

from functools import cache
from typing import Any, Literal

import numpy as np
from oracle import Array, Oracle

import latecomer as lc

ExtendedKind = Literal["tight", "waiting UCB", "waiting TS", "matured UCB", "matured TS", "imputed"]

BINS, PRIOR = 32, 4.0
DIRECT, LEVELS, COARSE_LEVELS = 32, 16, 4


@cache
def edges(span: int) -> Array:
    """Bin j is [e_j, e_{j+1}): cubes of j/32 of the window, at least one stamp each, and no further than m + 1."""
    found = [0]
    for j in range(1, BINS + 1):
        found.append(min(span + 1, max(int((span + 1) * (j / BINS) ** 3), found[-1] + 1)))
    return np.array(found, np.float64)


class ExtendedOracle(Oracle):
    """The tight width, waiting, maturity; and imputation, where the window is empty and no round is left to impute."""

    def __init__(
        self,
        dim: int,
        span: int,
        *,
        kind: ExtendedKind,
        ridge: float = 1.0,
        delta: float = 0.1,
        exploration: float = 1.0,
        optimism: float = 0.0,
        grace: int = 0,
        half_life: int | None = None,
    ) -> None:
        super().__init__(
            dim, span, kind="exact", ridge=ridge, delta=delta, exploration=exploration, grace=grace, half_life=half_life
        )
        self.beyond, self.optimism = kind, optimism
        self.delays: dict[int, int] = {}
        self.revoked_after: dict[int, int] = {}  # how many decisions had been made
        self._known: tuple[Any, Any] = (None, None)

    # ---- events ----

    def convert(self, round: int, value: float, now: int) -> lc.Verdict:
        verdict = super().convert(round, value, now)
        if verdict is lc.Verdict.ACCEPTED and now >= self.stamps[round - 1]:  # else the delay is anybody's guess
            seen = int(max(now, self.stamps[-1]) - self.stamps[round - 1])
            self.delays[round] = self.span if self.is_closed(round) else seen  # in its grace: seen no earlier
        return verdict

    def revoke(self, round: int, now: int) -> lc.Verdict:
        verdict = super().revoke(round, now)
        if verdict is lc.Verdict.ACCEPTED:
            self.revoked_after[round] = len(self.stamps)
        return verdict

    # ---- sums over the history ----

    def values(self) -> Array:
        """Return the value credited to each round so far."""
        rounds = range(1, len(self.stamps) + 1)
        return np.array([0.0 if s in self.revoked else self.credits.get(s, 0.0) for s in rounds])

    def closed(self, now: int) -> Array:
        return np.asarray(now - self.stamps > self.span, np.float64)

    def unanswered(self, now: int) -> Array:
        """Return O, the actions of open rounds that have not converted; a revoked round will not convert again."""
        converted = [s in self.credits for s in range(1, len(self.stamps) + 1)]
        weighed = self.actions * self.ages()[:, None]
        return np.asarray(weighed[(self.closed(now) == 0) & ~np.array(converted, bool)])

    def weighed(self, weights: Array) -> Array:
        return np.asarray(self.ridge * np.eye(self.dim) + (self.actions.T * weights) @ self.actions)

    # ---- the delay curve ----

    def counts(self, now: int) -> tuple[Array, Array]:
        """Return d_j and n_j over the rounds whose age covers bin j; a conversion counts as it was at that moment."""
        bounds = edges(self.span)
        rounds = np.array(list(self.delays), np.int64)
        delays = np.array(list(self.delays.values()))[:, None]
        covered_at = self.stamps[rounds - 1][:, None] + bounds[1:]
        decision = 1 + np.searchsorted(np.append(self.stamps, now), covered_at)  # the first that found it so
        revoked_after = np.array([self.revoked_after.get(s, np.inf) for s in rounds])[:, None]
        below = (now >= covered_at) & (delays < bounds[1:]) & (revoked_after >= decision)
        return (below & (delays >= bounds[:-1])).sum(axis=0), below.sum(axis=0)

    def curve(self, now: int) -> Array:
        """F_m(e_k)/F_m(g) = Π_{j ≥ k} (1 − q_j) over bins within g, with the prior mean of a uniform delay.

        g is the largest age that more than a sixteenth of the rounds, and more than one, have.
        """
        bounds, (within, below) = edges(self.span), self.counts(now)
        ages = np.sort(now - self.stamps)[::-1]
        older = int(np.ceil(len(ages) / 16))
        g = ages[older] if older < len(ages) else 0
        uniform = np.diff(bounds) / bounds[1:]
        q = np.where(bounds[1:] <= g, (PRIOR * uniform + within) / (PRIOR + below), 0.0)
        return np.append(np.cumprod((1 - q)[::-1])[::-1], 1.0)

    def maturity(self, now: int) -> Array:
        """Return F̂_m of each round's age, in sixteenths (in quarters beyond 32 dimensions), halves rounded up."""
        bounds = edges(self.span)
        grid, at = np.unique(bounds, return_index=True)
        shares = np.interp(now - self.stamps, grid, self.curve(now)[at])
        count = LEVELS if self.dim <= DIRECT else COARSE_LEVELS
        levels = (np.arange(count) + 0.5) / count
        return np.asarray((shares[:, None] >= levels).sum(axis=1) / count)

    # ---- the policies ----

    def statistics(self, now: int) -> tuple[Array, Array, float, float]:
        """Return the matrix, the sum of conversions, and the numerator and denominator of the plug-in rate.

        They are summed afresh for another moment and after any event: none is ever taken out of these lists.
        """
        self.moment = now
        history = now, len(self.stamps), len(self.credits), len(self.revoked)
        if self._known[0] != history:
            self._known = history, self._sum_up(now)
        known: tuple[Array, Array, float, float] = self._known[1]
        return known

    def _sum_up(self, now: int) -> tuple[Array, Array, float, float]:
        values = self.values() * self.ages()
        if self.beyond.startswith("waiting"):
            weights = self.closed(now)
            values = values * weights
        elif self.beyond.startswith("matured"):
            weights = self.maturity(now)
        else:
            weights = np.ones(len(self.stamps))
        weights = weights * self.ages()
        return self.weighed(weights), values @ self.actions, float(values.sum()), float(weights.sum())

    def estimate(self, now: int) -> Array:
        matrix, total, _, _ = self.statistics(now)
        return np.asarray(np.linalg.solve(matrix, total))

    def variance(self, now: int) -> float:
        _, _, worth, count = self.statistics(now)
        rate = min(0.9, (worth + 1) / (count + 2))
        return float(rate * (1 - rate))

    def log_ratio(self, matrix: Array) -> float:
        """2 ln(1/δ) + ln det(·)/λ^d."""
        return float(2 * np.log(1 / self.delta) + np.linalg.slogdet(matrix / self.ridge)[1])

    def radius(self, now: int) -> float:
        """r_t."""
        return float(np.sqrt(self.ridge) + 0.5 * np.sqrt(self.log_ratio(self.statistics(now)[0])))

    def pending_width(self, now: int) -> float:
        return float(np.sqrt(len(self.unanswered(now)))) if self.beyond == "tight" else 0.0

    def width(self, now: int) -> float:
        if self.beyond in ("tight", "waiting UCB"):
            return self.radius(now) + self.pending_width(now)
        if self.beyond == "matured UCB":
            return float(np.sqrt(self.variance(now) * self.log_ratio(self.V)))
        return self.variance(now)

    def scores(self, actions: Array, now: int, normals: Array) -> Array:
        matrix = self.statistics(now)[0]
        theta_hat = self.estimate(now)
        norms = np.sqrt(np.sum(actions.T * np.linalg.solve(matrix, actions.T), axis=0))
        if self.beyond == "tight":
            gains = np.maximum(actions @ np.linalg.solve(matrix, self.unanswered(now).T), 0).sum(axis=1)
            noise = 0.5 * np.sqrt(self.log_ratio(matrix)) * norms
            bias = self.ridge * np.linalg.norm(np.linalg.solve(matrix, actions.T), axis=0)
            return np.asarray(actions @ theta_hat + self.exploration * (noise + bias + gains))
        if self.beyond.endswith("UCB"):
            return np.asarray(actions @ theta_hat + self.exploration * self.width(now) * norms)
        upper = np.linalg.cholesky(matrix).T
        spread = self.exploration * np.sqrt(self.variance(now))
        sample = theta_hat + spread * np.linalg.solve(upper, normals[: self.dim])
        bonus = np.sum(actions.T * np.linalg.solve(self.V, actions.T), axis=0)
        return np.asarray(actions @ sample + self.optimism * self.advance_weight() * bonus)
