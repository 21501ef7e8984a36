"""The mean conversion rate p̂ and the variance v̂ of a Bernoulli variable at that rate."""

from latecomer.core.jit import kernel

LARGEST_RATE = 0.9
"""Values below 1 would otherwise let the variance vanish where nearly every round converts."""


@kernel
def estimate_rate(conversions: float, rounds: float) -> float:
    """p̂ = (conversions + 1)/(rounds + 2), at most 0.9."""
    return float(min(LARGEST_RATE, (conversions + 1.0) / (rounds + 2.0)))


@kernel
def bernoulli_variance(rate: float) -> float:
    """v̂ = p̂(1 − p̂)."""
    return rate * (1.0 - rate)
