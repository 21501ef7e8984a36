"""An evaluation in words: one line a policy, then what to know."""

from typing import TYPE_CHECKING, Any

from latecomer.evaluation.targets import LOGGED

if TYPE_CHECKING:
    from latecomer.evaluation.result import Evaluation

_DAY, _HOUR = 86_400.0, 3600.0


def write_text(found: "Evaluation") -> str:
    """Write the result in words."""
    facts = found.facts
    several = found.table["estimator"].n_unique() > 1
    lines = [_write_head(facts, "" if several else found.table["estimator"][0])]
    lines += [f"  {_write_row(row, facts, several=several)}" for row in found.details.iter_rows(named=True)]
    if facts["skipped"]:
        dirty = ", ".join(f"{count:,} × {reason}" for reason, count in facts["skipped"].items())
        lines.append(f"Rows skipped: {dirty}.")
    lines += [f"WARNING: {warning}." for warning in found.warnings]
    return "\n".join(lines)


def _write_head(facts: dict[str, Any], estimator: str) -> str:
    counted = "Value" if facts["is_value"] else "Conversions"
    within = "" if facts["window"] is None else f" within {format_window(facts['window'])}"
    by = f", by {estimator.upper()}" if estimator else ""
    return (
        f"{counted} for each decision{within}, of {facts['decisions']:,} logged decisions with "
        f"{facts['conversions']:,} conversions{by}, with {100 * facts['confidence']:g} % intervals:"
    )


def _write_row(row: dict[str, Any], facts: dict[str, Any], *, several: bool) -> str:
    name = "as logged" if row["policy"] == LOGGED else row["policy"]
    label = f"{name} ({row['estimator'].upper()})" if several else name
    parts = [f"{label}: {_format_interval(row['value'], row['low'], row['high'], is_share=not facts['is_value'])}"]
    if row["policy"] != LOGGED and row["lift"] is not None:
        bounds = f"{_sign(100 * row['lift_low'])} to {_sign(100 * row['lift_high'])}"
        parts.append(f"lift {_sign(100 * row['lift'])} % [{bounds}]{_write_baseline(row, facts)}")
    if row["policy"] != LOGGED and row["extra"] is not None:
        parts.append(_write_extra(row, facts))
    if row["anytime_low"] is not None:
        bounds = _format_bounds(row["anytime_low"], row["anytime_high"], is_share=not facts["is_value"])
        parts.append(f"at every look {bounds}")
    return "; ".join(parts)


def _write_baseline(row: dict[str, Any], facts: dict[str, Any]) -> str:
    """Say what was logged on the rounds that a policy is judged on, where they are not all: " over the 18.5 % …"."""
    if not is_judged_on_part(row, facts):
        return ""
    shown = format_mean(row["logged_value"], is_share=not facts["is_value"])
    return f" over the {shown} as logged of the {row['rounds']:,} decisions that it is judged on"


def _write_extra(row: dict[str, Any], facts: dict[str, Any]) -> str:
    """Say what a policy adds in a month: "+126 conversions [+84 to +168], EUR 3,150 [2,100 to 4,200] a month"."""
    thing = "" if facts["is_value"] else " conversions"
    text = f"{_sign(row['extra'])}{thing} [{_sign(row['extra_low'])} to {_sign(row['extra_high'])}]"
    if facts["money"] is not None:
        low, high = sorted(row[bound] * facts["money"] for bound in ("extra_low", "extra_high"))
        text += f", {_format_money(row['extra'] * facts['money'], facts['currency'])} [{low:,.0f} to {high:,.0f}]"
    at = "at your traffic" if facts["is_given_traffic"] else "at the log's traffic"
    return f"{text} a month {at} ({facts['traffic']:,.0f} decisions)"


def is_judged_on_part(row: dict[str, Any], facts: dict[str, Any]) -> bool:
    """Tell whether a policy is judged on a part of the log alone, which has its own rate as logged."""
    return bool(row["rounds"] < facts["decisions"])


def format_mean(value: float, *, is_share: bool) -> str:
    """Write a mean outcome: as per cent where it is a share of decisions."""
    return f"{format_figure(100 * value)} %" if is_share else format_figure(value)


def format_window(seconds: float) -> str:
    """Write a window in its largest whole unit.

    >>> format_window(7 * 86_400.0), format_window(5400.0)
    ('7 d', '1.5 h')
    """
    for unit, length in (("d", _DAY), ("h", _HOUR), ("min", 60.0)):
        if seconds >= length:
            return f"{seconds / length:g} {unit}"
    return f"{seconds:g} s"


def format_figure(number: float) -> str:
    """Write three digits, zeros at the end included.

    >>> format_figure(2.0), format_figure(0.01234), format_figure(123.4)
    ('2.00', '0.0123', '123')
    """
    return f"{number:#.3g}".rstrip(".")


def _format_interval(value: float | None, low: float | None, high: float | None, *, is_share: bool) -> str:
    if value is None:
        return "not known"
    return f"{format_mean(value, is_share=is_share)} {_format_bounds(low, high, is_share=is_share)}"


def _format_bounds(low: float | None, high: float | None, *, is_share: bool) -> str:
    if low is None or high is None:
        return "[not known]"
    scale = 100.0 if is_share else 1.0
    return f"[{format_figure(scale * low)}, {format_figure(scale * high)}]"


def _format_money(amount: float, currency: str) -> str:
    sign = "-" if amount < 0 else ""
    return f"{sign}{currency} {abs(amount):,.0f}" if currency else f"{sign}{abs(amount):,.0f}"


def _sign(number: float) -> str:
    return f"{number:+,.0f}" if abs(number) >= 10 else f"{number:+,.2g}"
