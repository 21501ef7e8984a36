"""The covariance of θ̂: v̂·G⁻¹, G the Gram matrix that θ̂ is solved with. A heuristic: rounds are not independent."""

import numpy as np

from latecomer.core.rates import bernoulli_variance, estimate_rate
from latecomer.core.state import Array
from latecomer.policies.base.compiled_state import CompiledState


def estimate_covariance(state: CompiledState) -> Array:
    """Return v̂·G⁻¹ with v̂ = p̂(1 − p̂); V⁻¹ stands for G⁻¹ where the policy has no Gram matrix of its own.

    A logistic policy's estimate has H⁻¹, without v̂: of its intercept no row or column is returned.
    """
    fields = state.record.dtype.names or ()
    dim = len(state.array("B"))
    if "gram" not in fields:
        inverse = state.array("V_inv")
    else:
        upper = np.triu(state.array("gram"))
        growth = state.number("ridge_growth") if "ridge_growth" in fields else 1.0
        shift = (growth - 1.0) * state.number("ridge")
        inverse = np.linalg.inv(upper + np.triu(upper, 1).T + shift * np.eye(len(upper)))
    counted = next(name for name in ("matured", "weight_sum", "rounds") if name in fields)
    rounds = state.number(counted)
    noise = bernoulli_variance(estimate_rate(state.number("credited"), rounds)) if len(inverse) == dim else 1.0
    covariance: Array = noise * inverse[:dim, :dim]
    return covariance
