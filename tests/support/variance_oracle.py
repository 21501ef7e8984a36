"""The variance-aware confidence set straight from the definitions: every sum over the history, in every round."""

from typing import Any

import numpy as np
from oracle import TIE, Array, Oracle

SCALES = [4.0**j for j in range(7)]
LEAST, FLOOR, SLACK = 1e-4, 0.25, 0.25  # u_min, c and ε


def omega(z: Any, bound: Any) -> Any:
    """ω(z, ū) = ⅓z² + ⅓((1 − z)² − ((1 − z − ū)₊)²)."""
    return z**2 / 3 + ((1 - z) ** 2 - np.maximum(1 - z - bound, 0) ** 2) / 3


class VarianceOracle(Oracle):
    """OTFLinUCB(width="variance"); `judge` gives the bounds to those who test the guard."""

    def __init__(
        self, dim: int, span: int, *, ridge: float = 1.0, delta: float = 0.1, exploration: float = 1.0
    ) -> None:
        super().__init__(dim, span, kind="exact", ridge=ridge, delta=delta, exploration=exploration)
        self.bounds, self.variances = np.empty(0), np.empty(0)  # ū_s and σ̄_s² of every round
        self.reach = exploration
        self.certificate = 0.0

    def sums(self, now: int) -> tuple[Array, Array, Array, Array]:
        """Return Hc, Hf, W and b: all but Hf over closed rounds, with their final values."""
        closed = now - self.stamps > self.span
        values = np.array([0.0 if s in self.revoked else self.credits.get(s, 0.0) for s in range(1, len(closed) + 1)])
        weights, eye = 1 / self.variances, self.ridge * np.eye(self.dim)
        strengths = omega(values, self.bounds) * weights**2 * closed
        return (
            eye + (self.actions.T * (weights * closed)) @ self.actions,
            eye + (self.actions.T * weights) @ self.actions,
            (self.actions.T * strengths) @ self.actions,
            (values * weights * closed) @ self.actions,
        )

    def levels(self, W: Array) -> Array:
        """γ_j = 2 ln(J/δ) + ln det(I + W/λ_j)."""
        logs = [np.linalg.slogdet(np.eye(self.dim) + W / scale)[1] for scale in SCALES]
        return np.asarray(2 * np.log(len(SCALES) / self.delta) + np.array(logs))

    def judge(self, actions: Array, now: int) -> tuple[Array, Array, Array]:
        """Return aᵀφ̂, h(a) and w(a) of each action."""
        Hc, Hf, W, b = self.sums(now)
        u = np.linalg.solve(Hc, actions.T).T
        q, e = np.sum(u * (u @ W), axis=1), np.linalg.norm(u, axis=1)
        widths = np.sqrt([g * (q + s * e**2) for g, s in zip(self.levels(W), SCALES, strict=True)]).min(axis=0)
        among_all = np.sqrt(np.sum(actions.T * np.linalg.solve(Hf, actions.T), axis=0))
        among_closed = np.sqrt(np.sum(actions * u, axis=1))
        h = np.minimum(1, (1 + SLACK) * among_all / np.where(among_closed > 0, among_closed, 1))
        return actions @ np.linalg.solve(Hc, b), np.where(among_closed > 0, h, 1), widths + self.ridge * e

    def estimate(self, now: int) -> Array:
        Hc, _, _, b = self.sums(now)
        return np.asarray(np.linalg.solve(Hc, b))

    def pending_width(self, now: int) -> float:
        return 0.0

    def width(self, now: int) -> float:
        return float(np.sqrt(self.levels(self.sums(now)[2])[0]))

    def scores(self, actions: Array, now: int, normals: Array) -> Array:
        means, h, w = self.judge(actions, now)
        return np.asarray(means + self.exploration * h * w)

    def guarded(self, actions: Array, now: int, proposed: int, kappa: float) -> int:
        """Return the proposal, or argmax U where it is more than κ(U − L) below that."""
        means, h, w = self.judge(actions, now)
        U = means + h * w
        best = 0
        for k in range(1, len(U)):
            if U[k] > U[best] + TIE * (1 + abs(U[best])):
                best = k
        return proposed if U[best] - U[proposed] <= kappa * 2 * (h * w)[proposed] else best

    def decide(self, actions: Array, now: int, normals: Array) -> tuple[int, float]:
        index, score = super().decide(actions, now, normals)
        self.stamps, self.actions = self.stamps[:-1], self.actions[:-1]
        self.record(actions[index], now)
        return index, score

    def record(self, action: Array, now: int) -> None:
        """Take a round that was played by whatever rule."""
        Hc, Hf, _, _ = self.sums(now)
        (mean,), _, (w,) = self.judge(action[None], now)
        bound = float(np.clip(mean + w, LEAST, 1))
        variance = bound * (1 - bound) if bound < 0.5 else 0.25
        known = max(0.0, mean - w)
        is_good = np.linalg.slogdet(Hf)[1] - np.linalg.slogdet(Hc)[1] <= 2 * np.log(1 + SLACK)
        self.certificate += max(0.0, (min(1.0, mean + self.reach * w) if is_good else 1.0) - known)
        self.bounds = np.append(self.bounds, bound)
        floor = FLOOR * float(np.sqrt(action @ np.linalg.solve(Hf, action)))
        self.variances = np.append(self.variances, max(variance, floor))
        self.actions = np.vstack([self.actions, action])
        self.stamps = np.append(self.stamps, now)
