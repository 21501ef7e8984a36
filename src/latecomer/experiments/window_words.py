"""The advice in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from latecomer.experiments.window_grid import spoken

Row = Mapping[str, Any]


def bytes_of(size: float) -> str:
    """A size as people say it.

    >>> bytes_of(64), bytes_of(4_300_000)
    ('64 B', '4.3 MB')
    """
    for name, unit in {"GB": 1e9, "MB": 1e6, "kB": 1e3}.items():
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} B"


def amount(value: float) -> str:
    """A count with three digits that matter.

    >>> amount(3.14159), amount(48211.0)
    ('3.14', '48,200')
    """
    return f"{value:.3g}" if abs(value) < 1000.0 else f"{float(f'{value:.3g}'):,.0f}"


def reason(rows: Sequence[Row], *, chosen: int, theory: int, facts: Mapping[str, Any]) -> str:
    """Why this window."""
    row, longest, period = rows[chosen], spoken(facts["longest_seconds"]), spoken(facts["horizon_seconds"])
    width = "" if row["low"] == row["high"] else f" (90 % band {row['low']:.1%} to {row['high']:.1%})"
    kept = f"{row['window']} keeps {row['share']:.1%}{width} of the conversions that come within {longest}."
    cost = (
        f"In simulation it loses {amount(row['regret'])} ± {amount(row['standard_error'])} conversions in {period} at "
        f"{amount(facts['decisions_an_hour'])} decisions an hour; playing at random loses "
        f"{amount(facts['regret_of_uniform_play'])}."
    )
    memory = f"Its pending decisions take {bytes_of(row['memory_bytes'])}."
    return " ".join([kept, cost, *_neighbours(rows, chosen), _theory(rows, chosen, theory), memory])


def _neighbours(rows: Sequence[Row], chosen: int) -> list[str]:
    """What the next shorter and the next longer window would do."""
    said = []
    if chosen > 0:
        shorter = rows[chosen - 1]
        said.append(f"A shorter one, {shorter['window']}, keeps {shorter['share']:.1%} and loses {_loss(shorter)}.")
    if chosen + 1 < len(rows):
        longer = rows[chosen + 1]
        more = "no fewer" if longer["regret"] >= rows[chosen]["regret"] else "hardly fewer"
        said.append(f"A longer one, {longer['window']}, keeps {longer['share']:.1%} and loses {more}, {_loss(longer)}.")
    return said


def _loss(row: Row) -> str:
    return f"{amount(row['regret'])} ± {amount(row['standard_error'])}"


def _theory(rows: Sequence[Row], chosen: int, theory: int) -> str:
    if theory == chosen:
        return "Theorem 2's bound is smallest there too."
    return (
        f"Theorem 2's bound is smallest at {rows[theory]['window']}: it is a worst case, far above what happens, and "
        "simulation decides."
    )


def notes(rows: Sequence[Row], *, chosen: int, facts: Mapping[str, Any]) -> list[str]:
    """What must be known to read the numbers."""
    longest, row = spoken(facts["longest_seconds"]), rows[chosen]
    said = [
        f"Shares are of the conversions that come within {longest}. What share of all conversions that is cannot be "
        "known from conversions: later ones, and those that never come, leave no trace."
    ]
    if facts["decisions_per_round"] > 1.0:
        said.append(f"A simulated round stands for {amount(facts['decisions_per_round'])} decisions. {_pooled(facts)}")
    if chosen + 1 == len(rows):
        said.append(f"The longest window was best; one longer than {longest} may be better still.")
    if row["high"] - row["low"] > 0.1:
        said.append(f"The share that {row['window']} keeps is uncertain; a longer log would narrow its band.")
    if row["regret"] >= facts["regret_of_uniform_play"]:
        said.append(
            "No window beat playing at random: within the horizon, too few conversions come in time to learn from."
        )
    return said


def _pooled(facts: Mapping[str, Any]) -> str:
    close = "Regret is then good for comparing windows, and some tenths off by itself; more rounds come closer."
    if facts["pooled"] == facts["decisions_per_round"]:
        return f"It converts as often as all of them would. {close}"
    return (
        f"It converts as often as {amount(facts['pooled'])} of them would; where that is far fewer, learning is slower "
        f"than in life, which favours windows that keep more. {close}"
    )
