"""The regret bounds of the paper (Vernade et al., ICML 2020), and of the widths beyond it."""

from latecomer.theory.bounds import lower_bound, tight_upper_bound, upper_bound, vacuous_until
from latecomer.theory.variance_bound import variance_upper_bound

__all__ = ["lower_bound", "tight_upper_bound", "upper_bound", "vacuous_until", "variance_upper_bound"]


def __dir__() -> list[str]:
    return __all__
