"""Tests whether the window cuts off more than it should: by conversions that come at its end, and by late ones."""

import math

from latecomer.service.bandit.monitor.arrivals import ArrivalModel

MOST_AT_END, MOST_LATE = 0.03, 0.05
"""Shares that are in order: of conversions in the last tenth of the window, and of reports that are late."""
_LEAST_CONVERSIONS, _LEAST_REPORTS = 100.0, 20


def judge_window_end(arrivals: ArrivalModel) -> tuple[float, float] | None:
    """Test whether the last tenth of the window brings more than 3 % of the conversions inside it.

    Returns the share and the p-value of a Poisson test; None where there is too little to say.
    """
    begin = len(arrivals.open) - len(arrivals.open) // 10 - 1
    rates, exposed = arrivals.rates(), arrivals.exposed / arrivals.weight
    if begin <= 0 or arrivals.conversions < _LEAST_CONVERSIONS or exposed[:-1].min() < 1.0:
        return None
    total, at_end = float(rates.sum()), float(rates[begin:].sum())
    allowed = MOST_AT_END * total / (len(rates) - begin) * float(exposed[begin:].sum())
    from scipy.special import pdtrc  # noqa: PLC0415 - SciPy is loaded where it is used

    seen = math.floor(arrivals.arrived[begin:].sum() / arrivals.weight)
    return at_end / total, float(pdtrc(seen - 1, allowed)) if seen else 1.0


def judge_late_reports(late: int, accepted: int) -> tuple[float, float] | None:
    """Test whether more than 5 % of the conversions come after their window.

    Returns the share and the p-value of a binomial test; None where there are too few reports.
    """
    total = late + accepted
    if total < _LEAST_REPORTS:
        return None
    from scipy.special import bdtrc  # noqa: PLC0415

    return late / total, float(bdtrc(late - 1, total, MOST_LATE)) if late else 1.0
