"""Mean rewards of actions, with the check that each is a probability."""

import math

import numpy as np

from latecomer.core.jit import vectorised
from latecomer.core.state import Array
from latecomer.policies.base.kernels import NORM_LIMIT
from latecomer.tiers.tiered_kernel import TieredKernel

ROUNDING = 1e-9
"""A mean may be so far outside [0, 1]."""


def _vectorised_mean_rewards(actions: Array, theta: Array, intercept: float, logistic: bool, means: Array) -> int:
    mean, square = np.full(len(actions), intercept), np.zeros(len(actions))
    for i in range(len(theta)):
        mean += actions[:, i] * theta[i]
        square += actions[:, i] * actions[:, i]
    means[:] = [1.0 / (1.0 + math.exp(-each)) for each in mean.tolist()] if logistic else mean
    is_right = (square <= NORM_LIMIT * NORM_LIMIT) & (means >= -ROUNDING) & (means <= 1.0 + ROUNDING)
    return -1 if is_right.all() else int(np.argmin(is_right))


@vectorised(_vectorised_mean_rewards)
def _mean_rewards(actions: Array, theta: Array, intercept: float, logistic: bool, means: Array) -> int:
    """Fill in the mean reward of each action; return −1, or the first action too long or without probability."""
    for k in range(actions.shape[0]):
        mean, square = intercept, 0.0
        for i in range(actions.shape[1]):
            entry = actions[k, i]
            mean += entry * theta[i]
            square += entry * entry
        if logistic:
            mean = 1.0 / (1.0 + math.exp(-mean))
        means[k] = mean
        if not (square <= NORM_LIMIT * NORM_LIMIT and -ROUNDING <= mean <= 1.0 + ROUNDING):
            return k
    return -1


mean_rewards = TieredKernel(
    _mean_rewards,
    lambda: (np.ones((1, 1)), np.ones(1), 1.0, False, np.ones(1)),
    label="the world",
    worthwhile=1_000_000,
)
