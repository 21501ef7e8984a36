"""The advice in words."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from latecomer.durations import format_duration
from latecomer.experiments.window.choice import MOST, TOLERANCE, Comparison

Row = Mapping[str, Any]

SAME, MORE, UNCLEAR = "same", "more", "unclear"
"""Costs about the same as the cheapest, or more, or the runs do not tell."""
_LARGE = 1e9
_NAMED = 4


def format_bytes(size: float) -> str:
    """Format a size in bytes.

    >>> format_bytes(64), format_bytes(4_300_000)
    ('64 B', '4.3 MB')
    """
    for name, unit in {"GB": 1e9, "MB": 1e6, "kB": 1e3}.items():
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} B"


def format_amount(value: float) -> str:
    """Format a count with three significant digits.

    >>> format_amount(3.14159), format_amount(48211.0)
    ('3.14', '48,200')
    """
    return f"{value:.3g}" if abs(value) < 1000.0 else f"{float(f'{value:.3g}'):,.0f}"


def write_finding(rows: Sequence[Row], compared: Comparison, *, warning: str = "") -> str:
    """Write the advice in a sentence, after a warning if there is one; a second where the runs do not show it."""
    taken, cheapest = rows[compared.chosen]["window"], rows[compared.cheapest]["window"]
    low, high = compared.alike
    if compared.excess[compared.chosen] > compared.tolerance:
        said = f"{taken} and the cheapest, {cheapest}, may cost about the same; take {taken}, {_write_why(compared)}."
    elif low == high:
        so_far = "" if compared.is_clear else "By these runs, "
        if compared.cheapest != compared.chosen:
            alike = f"{taken} costs about the same as the cheapest, {cheapest}"
            said = f"{so_far}{alike}; take {taken}, {_write_why(compared)}."
        elif np.count_nonzero(compared.excess <= compared.tolerance) > 1:
            said = f"{so_far}{taken} costs least; take {taken}."
        else:
            said = f"{so_far}{'n' if so_far else 'N'}o other window costs as little as {taken}; take {taken}."
    else:
        spread = f"{rows[low]['window']} to {rows[high]['window']}"
        cost = "costs" if compared.is_clear else "may cost"
        by_means = " by these runs" if compared.is_clear and not compared.are_alike_shown else ""
        said = f"Anything from {spread} {cost} about the same{by_means}; take {taken}, {_write_why(compared)}."
    uncertain = "" if compared.is_clear else "This is not certain: more runs may show that it costs more."
    return " ".join(filter(None, [warning, said, uncertain]))


def _write_why(compared: Comparison) -> str:
    share = f"{100 * MOST:.0f} % of the conversions"
    if compared.keeps_most:
        return f"the shortest of them that keeps {share}"
    return f"the longest of them: none that keeps {share} costs as little"


def format_plus_minus(value: float, error: float) -> str:
    """Format a mean and its standard error, to two digits of the error.

    >>> format_plus_minus(3.14159, 0.0271), format_plus_minus(48211.0, 870.0), format_plus_minus(2.0, 0.0)
    ('3.142 ± 0.027', '48,211 ± 870', '2')
    """
    if not error > 0.0:
        return format_amount(value)
    decimals = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:,.{decimals}f} ± {error:,.{decimals}f}"


def write_reason(rows: Sequence[Row], compared: Comparison, *, theory: int, facts: Mapping[str, Any]) -> str:
    """Write the numbers behind the sentence."""
    chosen, longest, period = (
        compared.chosen,
        format_duration(facts["longest_seconds"]),
        format_duration(facts["horizon_seconds"]),
    )
    row, cheapest = rows[chosen], rows[compared.cheapest]
    width = "" if row["low"] == row["high"] else f" (90 % band {row['low']:.1%} to {row['high']:.1%})"
    kept = f"{row['window']} keeps {row['share']:.1%}{width} of the conversions that come within {longest}."
    more = (
        "the least of all"
        if row is cheapest
        else f"{format_plus_minus(row['excess'], row['excess_error'])} more than the cheapest, {cheapest['window']}"
    )
    cost = (
        f"In simulation it loses {format_amount(row['regret'])} conversions in {period} at "
        f"{format_amount(facts['decisions_an_hour'])} decisions an hour, {more}; playing at random loses "
        f"{format_amount(facts['regret_of_uniform_play'])}. About the same: within {100 * TOLERANCE:.0f} % of that, "
        f"{format_amount(facts['tolerance'])}."
    )
    memory = f"Its pending decisions take {format_bytes(row['memory_bytes'])}."
    return " ".join([kept, cost, *_write_neighbours(rows, chosen), _write_theory(rows, chosen, theory), memory])


def _write_neighbours(rows: Sequence[Row], chosen: int) -> list[str]:
    """Write about the next shorter and the next longer window."""
    beside = {"shorter": chosen - 1, "longer": chosen + 1}
    return [
        f"A {word} one, {rows[at]['window']}, keeps {rows[at]['share']:.1%} and loses "
        f"{format_amount(rows[at]['regret'])}."
        for word, at in beside.items()
        if 0 <= at < len(rows)
    ]


def _write_theory(rows: Sequence[Row], chosen: int, theory: int) -> str:
    if theory == chosen:
        return "Theorem 2's bound is smallest there too."
    return (
        f"Theorem 2's bound is smallest at {rows[theory]['window']}: it is a worst case, far above what happens, and "
        "does not decide."
    )


def write_notes(rows: Sequence[Row], compared: Comparison, *, dirt: str, facts: Mapping[str, Any]) -> list[str]:
    """Write the limits of the numbers."""
    longest, period, row = (
        format_duration(facts["longest_seconds"]),
        format_duration(facts["horizon_seconds"]),
        rows[compared.chosen],
    )
    said = [f"{dirt}."] if dirt else []
    said.append(_write_effort(rows, compared, facts))
    said.append(
        f"Shares are of the conversions that come within {longest}. What share of all conversions that is cannot be "
        "known from conversions: later ones, and those that never come, leave no trace."
    )
    if facts["decisions_per_round"] > 1.0:
        said.append(
            f"A simulated round stands for {format_amount(facts['decisions_per_round'])} decisions. "
            + _write_pooled(facts)
        )
    if row["seconds"] > facts["horizon_seconds"]:
        said.append(f"Over {period} every window from there on sees the same; a longer horizon would tell them apart.")
    if compared.chosen + 1 == len(rows):
        said.append(f"The longest window is recommended; one longer than {longest} may be better still.")
    if row["high"] - row["low"] > 0.1:
        said.append(f"The share that {row['window']} keeps is uncertain; a longer log would narrow its band.")
    if min(one["regret"] for one in rows) >= facts["regret_of_uniform_play"]:
        said.append(
            "No window beat playing at random: within the horizon, too few conversions come in time to learn from."
        )
    said.extend(_write_large(rows, compared))
    return said


def _write_effort(rows: Sequence[Row], compared: Comparison, facts: Mapping[str, Any]) -> str:
    """Write how many runs there were, and how much they show."""
    runs, most = facts["runs"], facts["most_runs"]
    if facts["is_interrupted"]:
        spent = f"Interrupted after {runs:,} of at most {most:,} runs"
    elif compared.is_clear:
        spent = f"The choice was clear after {runs:,} of at most {most:,} runs"
    else:
        spent = f"All {runs:,} runs are done, and more would be needed"
    unclear = [row["window"] for row in rows if row["cost"] == UNCLEAR]
    if not unclear:
        return f"{spent}."
    named = ", ".join(unclear) if len(unclear) <= _NAMED else f"{len(unclear)} from {unclear[0]} to {unclear[-1]}"
    return f"{spent}; they leave open whether some windows cost about the same or more: {named}."


def _write_large(rows: Sequence[Row], compared: Comparison) -> list[str]:
    """Write a hint where the memory is large, and a shorter window would do."""
    row, shorter = rows[compared.chosen], rows[compared.alike[0]]
    if row["memory_bytes"] < _LARGE or row is shorter:
        return []
    return [
        f"{row['window']} takes {format_bytes(row['memory_bytes'])}; {shorter['window']} costs about the same in "
        f"simulation, keeps {shorter['share']:.1%}, and takes {format_bytes(shorter['memory_bytes'])}."
    ]


def _write_pooled(facts: Mapping[str, Any]) -> str:
    close = "Regret is then good for comparing windows, and some tenths off by itself; more rounds come closer."
    if facts["pooled"] == facts["decisions_per_round"]:
        return f"It converts as often as all of them would. {close}"
    return (
        f"It converts as often as {format_amount(facts['pooled'])} of them would; where that is far fewer, learning is "
        f"slower than in life, which favours windows that keep more. {close}"
    )
