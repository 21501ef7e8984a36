"""`recommended` from the definitions: maturity with a prior, an estimated ridge, and a discount for contexts."""

from typing import Any

import numpy as np
from extended_oracle import DIRECT, ExtendedOracle
from oracle import Array

INTERVAL, FIXED_POINT = 16, 32767


def log_evidence(total: Array, gram: Array, centre: Array, precision: Array, v: float) -> float:
    """Return ln p(B) where B ~ N(Gθ, vG) and θ ~ N(μ, vP⁻¹), up to a constant; G need not be invertible."""
    sum_, joint = total + precision @ centre, precision + gram
    square = sum_ @ np.linalg.solve(joint, sum_) - centre @ precision @ centre
    return float((np.linalg.slogdet(precision)[1] - np.linalg.slogdet(joint)[1] + square / v) / 2)


class RecommendedOracle(ExtendedOracle):
    """`MaturedLinTS` with all its refinements, from sums over the whole history of action sets."""

    def __init__(
        self,
        dim: int,
        span: int,
        *,
        prior: float,
        shrinkage: float,
        context_discount: float,
        optimism_discount: float,
        final_exploration: float,
        false_alarms: float = 0.0,
        **more: Any,
    ) -> None:
        super().__init__(dim, span, kind="matured TS", **more)
        self.false_alarms = false_alarms if self.half_life and dim <= DIRECT else 0.0
        self.starts: list[int] = []  # the stamps at which buckets begin
        self.since, self.changes = -1, 0  # rounds before it were dropped; how many changes were found
        self.suspected = -1  # rounds before it are set aside
        self.suspicions = self.moves = self.reliefs = self.lasted = 0
        self.prior, self.shrinkage, self.context_discount = prior, shrinkage, context_discount
        self.optimism_discount, self.final_exploration = optimism_discount, final_exploration
        self.means = np.empty((0, dim))
        self.spreads: list[float] = []  # the variance that a mean of K draws would have
        self.growth, self.due = 1.0, 0

    def observe(self, actions: Array, now: int) -> None:
        """Add an action set to the history, and estimate the ridge again where it is due."""
        mean, count = actions.mean(axis=0), len(actions)
        spread = np.sum((actions - mean) ** 2) / count
        self.means = np.vstack([self.means, np.round(mean * FIXED_POINT) / FIXED_POINT])
        self.spreads.append(float(np.round(spread * FIXED_POINT)) / FIXED_POINT / (count - 1) if count > 1 else 0.0)
        self.update_growth(now)

    def follow(self, action: Array, now: int) -> None:
        """Add a decision that the policy made, after `observe`."""
        self.actions = np.vstack([self.actions, action])
        self.stamps = np.append(self.stamps, now)

    def decide(self, actions: Array, now: int, normals: Array) -> tuple[int, float]:
        self.observe(actions, now)
        return super().decide(actions, now, normals)

    # ---- changes ----

    def ages(self) -> Array:
        return super().ages() * (self.stamps >= self.since)

    def advance_weight(self) -> float:
        counted = self.ages()[self.stamps >= self.since]
        return float(counted[0]) if len(counted) else 1.0

    def statistics(self, now: int) -> tuple[Array, Array, float, float]:
        if self.false_alarms:
            self.follow_change(now)
        return super().statistics(now)

    def counted(self) -> Array:
        """Return w_s, 0 of rounds that are set aside."""
        return np.asarray(self.ages() * (self.stamps >= self.suspected))

    def _sum_up(self, now: int) -> tuple[Array, Array, float, float]:
        values, weights = self.values() * self.counted(), self.maturity(now) * self.counted()
        return self.weighed(weights), values @ self.actions, float(values.sum()), float(weights.sum())

    @property
    def B(self) -> Array:
        return np.asarray((self.values() * self.counted()) @ self.actions)

    def since_start(self, k: int) -> Array:
        """Return which rounds are in bucket k or a later one."""
        return np.asarray(self.stamps >= self.starts[k])

    def follow_change(self, now: int) -> None:
        """Test the recent rounds where the newest bucket is full, and begin another."""
        self.moment = now
        if not len(self.stamps) or now <= self.stamps[-1]:
            self.starts = self.starts or [now]
            return
        weights = self.ages()
        if weights[self.since_start(-1)].sum() < max(4.0, self.dim / 2, weights.sum() / 256):
            return
        excess = {k: self.shortfall(k, now) for k in range(1, len(self.starts))}
        change = max(excess, key=excess.__getitem__, default=0)
        strong = -np.log(self.false_alarms)
        before = self.since, self.suspected
        if change and excess[change] > max(strong, 0.0):
            self.drop_before(self.starts[change])
        elif self.suspected >= 0:
            self.follow_suspicion(now, strong)
        elif change and excess[change] > 1:
            self.suspected, self.suspicions = self.starts[change], self.suspicions + 1
        if before != (self.since, self.suspected):
            self.growth, self.due, self._known = 1.0, 0, (None, None)
        self.merge_starts()
        self.starts.append(now)

    def drop_before(self, start: int) -> None:
        self.starts = [each for each in self.starts if each >= start]
        self.since, self.suspected, self.changes = start, -1, self.changes + 1

    def follow_suspicion(self, now: int, strong: float) -> None:
        """Move the suspicion to a start that explains more, confirm it, or give it up."""
        contrasts = {self.starts[k]: self.contrast(k, now) for k in range(1, len(self.starts))}
        best = max(contrasts, key=contrasts.__getitem__)
        if contrasts[best] > contrasts[self.suspected] + 1:
            self.suspected, self.moves = best, self.moves + 1
        aside = self.ages()[self.stamps < self.suspected].sum()
        if contrasts[self.suspected] < -1:
            self.suspected, self.reliefs = -1, self.reliefs + 1
        elif contrasts[self.suspected] > strong:
            self.drop_before(self.suspected)
        elif self.counted().sum() > 0.2 * aside:
            self.drop_before(self.suspected)
            self.lasted += 1

    def threshold(self, n: float) -> float:
        """Return ln(H/n), at least 0."""
        half_life = self.half_life or 1
        step = np.log(2) * max(1, half_life // 64) / half_life
        looked_for = np.log(2) * self.ages().sum() / max(1 - self.advance_weight(), step)
        return float(np.log(max(1.0, looked_for / n)))

    def shortfall(self, k: int, now: int) -> float:
        """Return by how much the statistic of fewer conversions since start k exceeds ln(H/n)."""
        recent, weights, values = self.since_start(k), self.ages(), self.values()
        due = weights * self.maturity(now)
        n, converted = weights[recent].sum(), (weights * values)[recent].sum()
        earlier = self.weighed(np.where(recent, 0.0, due))
        theta = np.linalg.solve(earlier, np.where(recent, 0.0, weights * values) @ self.actions)
        u = np.where(recent, due, 0.0) @ self.actions
        q, y = min(u @ theta / n, 0.999), converted / n
        if y >= q:
            return -self.threshold(n)
        divergence = (1 - y) * np.log((1 - y) / (1 - q)) + (y * np.log(y / q) if y > 0 else 0.0)
        rate = min(0.9, ((weights * values).sum() + 1) / (due.sum() + 2))
        v, doubt = n * q * (1 - q), 3 * rate * (1 - rate) * (u @ np.linalg.solve(earlier, u))
        return float(n * divergence * v / (v + doubt) - self.threshold(n))

    def contrast(self, k: int, now: int) -> float:
        """Return by how much the log of the Bayes factor of another θ since start k exceeds ln(H/n)."""
        recent, weights = self.since_start(k), self.ages()
        due, values = weights * self.maturity(now), weights * self.values()
        if due[recent].sum() < self.dim / 2:
            return -np.inf
        earlier_due, earlier_values = np.where(recent, 0.0, due), np.where(recent, 0.0, values)
        rate = min(0.9, (values.sum() + 1) / (due.sum() + 2))
        earlier_rate = min(0.9, (earlier_values.sum() + 1) / (earlier_due.sum() + 2))
        v = rate * (1 - rate * due[recent].sum() / weights[recent].sum())
        earlier = self.weighed(earlier_due)
        unchanged = np.asarray(np.linalg.solve(earlier, earlier_values @ self.actions), np.float64)
        total = np.where(recent, values, 0.0) @ self.actions
        gram = self.weighed(np.where(recent, due, 0.0)) - self.ridge * np.eye(self.dim)
        prior = max(1.0, 2 * (1 - earlier_rate) / earlier_rate) * np.eye(self.dim)
        changed = log_evidence(total, gram, np.zeros(self.dim), prior, v)
        factor = changed - log_evidence(total, gram, unchanged, earlier / 3, v)
        return factor - self.threshold(weights[recent].sum())

    def merge_starts(self) -> None:
        """Leave out starts so that the weights since them are about a geometric sequence; at most 31 stay."""
        weights = self.ages()
        k = len(self.starts) - 2
        while k >= 1:
            before, after = (weights[self.since_start(i)].sum() for i in (k - 1, k + 1))
            if self.starts[k] != self.suspected and before <= 1.5 * after:
                del self.starts[k]
            k -= 1
        if len(self.starts) == 32:
            del self.starts[2 if self.starts[1] == self.suspected else 1]

    # ---- the prior, and the ridge ----

    def has_changed(self) -> bool:
        return self.suspected >= 0 or self.changes > 0

    def rate(self, now: int) -> float:
        _, _, worth, count = self.statistics(now)
        return min(0.9, (worth + 1) / (count + 2))

    def centre(self, now: int) -> Array:
        """θ_0: the mean action converts at w times the mean rate; its norm is at most w·p̂·√d. 0 after a change."""
        if self.has_changed() or not len(self.means) or not np.any(mean := self.means.mean(axis=0)):
            return np.zeros(self.dim)
        longest = self.prior * self.rate(now) * np.sqrt(self.dim)
        centre = self.prior * self.rate(now) * mean / (mean @ mean)
        return np.asarray(centre * min(1.0, longest / np.linalg.norm(centre)) if self.prior else centre)

    def relative(self, variances: Array) -> float:
        total = sum(self.spreads)
        return float(np.clip(variances.sum() / total, 0.0, 1.0)) if total > 0 else 0.0

    def diversity(self) -> float:
        return self.relative((self.means - self.means.mean(axis=0)) ** 2)

    def freshness(self) -> float:
        return self.relative(np.diff(self.means, axis=0) ** 2 / 2)

    def matrix(self, now: int) -> Array:
        """A + λI, λ the grown ridge."""
        return np.asarray(self.statistics(now)[0] + (self.growth - 1) * self.ridge * np.eye(self.dim))

    def estimate(self, now: int) -> Array:
        total = self.statistics(now)[1] + self.growth * self.ridge * self.centre(now)
        return np.asarray(np.linalg.solve(self.matrix(now), total))

    def update_growth(self, now: int) -> None:
        rounds = len(self.stamps)
        self.statistics(now)  # a change is looked for first
        if self.shrinkage == 1 or rounds < self.due or self.has_changed():
            return
        self.due = rounds + max(1 + rounds // INTERVAL, self.dim // INTERVAL if self.dim > DIRECT else 1)
        eigenvalues = np.linalg.eigvalsh(self.matrix(now) - self.growth * self.ridge * np.eye(self.dim))
        determined = np.sum(eigenvalues / (eigenvalues + self.growth * self.ridge))
        off = self.estimate(now) - self.centre(now)
        weight = self.dim / (self.shrinkage - 1)
        counted = determined * {1: 0, 2: 0, 3: 1 / 3, 4: 2 / 3}.get(self.dim, 1)
        ratio = (counted + weight) / (self.ridge * self.dim / 2 * np.max(off**2) / self.variance(now) + weight)
        self.growth = 1 + self.freshness() * (max(1.0, ratio) - 1)

    def scores(self, actions: Array, now: int, normals: Array) -> Array:
        varied, half = self.diversity(), 20 / (20 + self.statistics(now)[2])
        fixed = half * self.exploration + (1 - half) * self.final_exploration
        where_varied = (1 - self.context_discount) * self.exploration
        scale = (varied * where_varied + (1 - varied) * fixed) * np.sqrt(self.variance(now))
        upper = np.linalg.cholesky(self.matrix(now)).T
        sample = self.estimate(now) + scale * np.linalg.solve(upper, normals[: self.dim])
        bonus = np.sum(actions.T * np.linalg.solve(self.V, actions.T), axis=0)
        return np.asarray(
            actions @ sample + (1 - varied * self.optimism_discount) * self.optimism * self.advance_weight() * bonus
        )
