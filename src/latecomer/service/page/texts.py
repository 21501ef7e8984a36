"""Numbers, times and values as the page writes them."""

from datetime import datetime

from latecomer.service.bandit_report import BanditReport
from latecomer.service.bandit_spec import ValueUnit

NONE = "–"


def format_share(share: float | None) -> str:
    """Write a share as per cent; a dash where there is none.

    >>> format_share(0.1234), format_share(0.0123), format_share(None)
    ('12.3%', '1.23%', '–')
    """
    if share is None:
        return NONE
    per_cent = 100.0 * share
    return f"{per_cent:.1f}%" if abs(per_cent) >= 10 else f"{per_cent:.2f}%"


def format_moment(moment: datetime) -> str:
    """Write a moment in UTC, to the second where it is not on a minute."""
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment.second else f"{moment:%Y-%m-%d %H:%M}"


def format_duration(seconds: float) -> str:
    """Write a duration in its largest unit that it has at least one of.

    >>> format_duration(900), format_duration(86_400), format_duration(5400)
    ('15 min', '1 d', '1.5 h')
    """
    for name, unit in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:.3g} s" if seconds >= 1 or not seconds else f"{seconds * 1000:.3g} ms"


def format_value(value: float, unit: ValueUnit | None) -> str:
    """Write a sum of values in the user's unit.

    >>> format_value(12.5, None), format_value(12.5, ValueUnit(name="EUR", scale=250))
    ('12.5', '3,125 EUR')
    """
    if unit is None:
        return f"{value:,.1f}"
    amount = value * unit.scale
    return f"{amount:,.0f} {unit.name}" if abs(amount) >= 1000 else f"{amount:,.2f} {unit.name}"


def format_window(window: int | str) -> str:
    """Write the window of a bandit."""
    return f"{window:,} rounds" if isinstance(window, int) else window


def find_ends(report: BanditReport) -> tuple[str, str, str]:
    """Return the names of the first, the middle and the last period."""
    if not report.periods:
        return "", "", ""
    first, middle, last = (report.periods[place].start for place in (0, len(report.periods) // 2, -1))
    return format_moment(first), format_moment(middle) if len(report.periods) > 2 else "", format_moment(last)
