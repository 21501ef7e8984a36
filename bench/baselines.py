"""LinUCB by hand, with NumPy alone: what a decision and a conversion cost without Latecomer.

Both are competent: V⁻¹ by Sherman-Morrison, no loop over the actions, the chosen row of A·V⁻¹ reused for the update.
Neither checks its arguments, and neither widens for what is pending. `NumpyLinUCB` is written for the reader and does
the job that Latecomer does: it keeps V beside V⁻¹, and answers with the action (a copy, for callers reuse their arrays)
and its score. `TunedLinUCB` is the least that chooses the same: no V, no answer but the index, every NumPy call the
quickest one for its work.
"""

import math

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Array = npt.NDArray[np.float64]


class Choice(Struct, frozen=True, eq=False):
    """As cheap a record as Python has, so that the record is not what is measured."""

    round: int
    index: int
    action: Array | None = None
    score: float = 0.0


class NumpyLinUCB:
    """A decision moves V and the window, a conversion moves B; δ, λ and f as in `latecomer.LinUCB`."""

    def __init__(self, dim: int, window: int, *, ridge: float = 1.0, delta: float = 0.1) -> None:
        self.dim, self.window, self.ridge, self.delta = dim, window, ridge, delta
        self.V = np.eye(dim) * ridge
        self.V_inv = np.eye(dim) / ridge
        self.B = np.zeros(dim)
        self.rounds = 0
        self.pending: dict[int, Array] = {}

    def radius(self) -> float:
        """f_{t,δ}."""
        scale = self.dim * self.ridge
        log_det = self.dim * math.log((scale + self.rounds) / scale)
        return math.sqrt(self.ridge) + math.sqrt(2.0 * math.log(1.0 / self.delta) + log_det)

    def decide(self, actions: Array) -> Choice:
        self.rounds += 1
        theta_hat = self.V_inv @ self.B
        products = actions @ self.V_inv
        squared = (products * actions).sum(axis=1)  # quicker than einsum at this size
        scores = actions @ theta_hat + self.radius() * np.sqrt(squared)
        index = int(np.argmax(scores))
        action = actions[index].copy()
        u = products[index]
        self.V += np.outer(action, action)
        self.V_inv -= np.outer(u, u / (1.0 + squared[index]))
        self.pending[self.rounds] = action
        self.pending.pop(self.rounds - self.window - 1, None)
        return Choice(self.rounds, index, action, float(scores[index]))

    def convert(self, round: int) -> bool:
        action = self.pending.pop(round, None)
        if action is None:
            return False
        self.B += action
        return True


class TunedLinUCB(NumpyLinUCB):
    """The plain baseline with methods for operators, `vecdot` for a sum, and fewer temporaries."""

    def decide(self, actions: Array) -> Choice:
        self.rounds = round = self.rounds + 1
        V_inv = self.V_inv
        products = actions.dot(V_inv)
        squared = np.vecdot(products, actions)
        scores = np.sqrt(squared)
        scores *= self.radius()
        scores += actions.dot(V_inv.dot(self.B))
        index = int(scores.argmax())
        u = products[index]
        V_inv -= (u / (1.0 + squared.item(index)))[:, None] * u
        self.pending[round] = actions[index]
        self.pending.pop(round - self.window - 1, None)
        return Choice(round, index)
