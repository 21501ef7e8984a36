"""OTFLinUCB and OTFLinTS straight from the definitions: everything is summed and solved afresh in every round."""

from typing import Literal

import numpy as np
import numpy.typing as npt

import latecomer as lc

Array = npt.NDArray[np.float64]
Kind = Literal["exact", "buffered", "heuristic", "conservative", "confidence"]

TIE = 1e-10


class Oracle:
    """OTFLinUCB (exact, buffered) and OTFLinTS (three betas), from the whole history."""

    def __init__(
        self,
        dim: int,
        span: int,
        *,
        kind: Kind,
        ridge: float = 1.0,
        delta: float = 0.1,
        exploration: float = 1.0,
        grace: int = 0,
        half_life: int | None = None,
    ) -> None:
        self.half_life, self.moment = half_life, 0
        self.dim, self.span, self.grace, self.kind = dim, span, grace, kind
        self.ridge, self.delta, self.exploration = ridge, delta, exploration
        self.actions = np.empty((0, dim))
        self.stamps = np.empty(0, np.int64)
        self.frozen_norms = np.empty(0)
        self.credits: dict[int, float] = {}
        self.revoked: set[int] = set()

    def ages(self) -> Array:
        """Return w_s of every round at the latest moment: 2^(−age/half-life), ages in steps of a 64th of it."""
        if self.half_life is None:
            return np.ones(len(self.stamps))
        step = max(1, self.half_life // 64)
        return np.asarray(0.5 ** ((self.moment // step - self.stamps // step) * step / self.half_life))

    def advance_weight(self) -> float:
        """Return the weight of what was given before the first round: that of the first round."""
        return float(self.ages()[0]) if len(self.stamps) else 1.0

    @property
    def V(self) -> Array:
        return np.asarray(self.ridge * np.eye(self.dim) + (self.actions.T * self.ages()) @ self.actions, np.float64)

    @property
    def B(self) -> Array:
        counted = {round: value for round, value in self.credits.items() if round not in self.revoked}
        rows = (self.actions * self.ages()[:, None])[[round - 1 for round in counted]]
        return np.asarray(np.array(list(counted.values())) @ rows) if counted else np.zeros(self.dim)

    @property
    def theta_hat(self) -> Array:
        return np.asarray(np.linalg.solve(self.V, self.B), np.float64)

    def estimate(self, now: int) -> Array:
        """Return θ̂ at a decision: it does not depend on the time, but by what is forgotten."""
        self.moment = now
        return self.theta_hat

    def f(self, t: int) -> float:
        d, ridge = self.dim, self.ridge
        return float(np.sqrt(ridge) + np.sqrt(2 * np.log(1 / self.delta) + d * np.log((d * ridge + t) / (d * ridge))))

    def pending_width(self, now: int) -> float:
        self.moment = now
        window = now - self.stamps <= self.span
        if self.kind == "exact":
            rows = self.actions[window]
            return float(np.sqrt(np.sum(rows.T * np.linalg.solve(self.V, rows.T), axis=0)).sum())
        return float(self.frozen_norms[window].sum())

    def width(self, now: int) -> float:
        f, pending = self.f(len(self.stamps) + 1), self.pending_width(now)
        return {
            "exact": 2 * f + pending,
            "buffered": 2 * f + pending,
            "heuristic": 1 + pending / f,
            "conservative": f + pending,
            "confidence": (f + pending) ** 2,
        }[self.kind]

    def scores(self, actions: Array, now: int, normals: Array) -> Array:
        self.moment = now
        V, theta_hat, width = self.V, self.theta_hat, self.width(now)
        if self.kind in ("exact", "buffered"):
            norms = np.sqrt(np.sum(actions.T * np.linalg.solve(V, actions.T), axis=0))
            return np.asarray(actions @ theta_hat + self.exploration * width * norms)
        # V = LLᵀ, and L⁻ᵀz has covariance V⁻¹
        lower = np.linalg.cholesky(V)
        sample = theta_hat + self.exploration * np.sqrt(width) * np.linalg.solve(lower.T, normals)
        return np.asarray(actions @ sample)

    def decide(self, actions: Array, now: int, normals: Array) -> tuple[int, float]:
        scores = self.scores(actions, now, normals)
        best = 0
        for k in range(1, len(scores)):
            if scores[k] > scores[best] + TIE * (1 + abs(scores[best])):
                best = k
        action = actions[best]
        self.frozen_norms = np.append(self.frozen_norms, np.sqrt(action @ np.linalg.solve(self.V, action)))
        self.actions = np.vstack([self.actions, action])
        self.stamps = np.append(self.stamps, now)
        return best, float(scores[best])

    def verdict(self, round: int, now: int) -> lc.Verdict:
        """Return the verdict by the time of the report: the window and the grace must hold it."""
        if not 1 <= round <= len(self.stamps):
            return lc.Verdict.UNKNOWN
        if max(now, self.stamps[-1]) - self.stamps[round - 1] > self.span + self.grace:
            return lc.Verdict.LATE
        return lc.Verdict.DUPLICATE if round in self.credits else lc.Verdict.ACCEPTED

    def is_closed(self, round: int) -> bool:
        """Tell whether a round had closed at the latest decision."""
        return bool(self.stamps[-1] - self.stamps[round - 1] > self.span)

    def convert(self, round: int, value: float, now: int) -> lc.Verdict:
        verdict = self.verdict(round, now)
        if verdict is not lc.Verdict.UNKNOWN and now - self.stamps[round - 1] > self.span:
            return lc.Verdict.LATE  # it occurred outside of the window, whenever it is reported
        if verdict is lc.Verdict.ACCEPTED:
            self.credits[round] = value
        return verdict

    def revoke(self, round: int, now: int) -> lc.Verdict:
        verdict = self.verdict(round, now)
        if verdict is lc.Verdict.ACCEPTED:
            return lc.Verdict.UNKNOWN
        if verdict is lc.Verdict.DUPLICATE and round not in self.revoked:
            self.revoked.add(round)
            return lc.Verdict.ACCEPTED
        return verdict
