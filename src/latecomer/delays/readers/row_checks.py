"""Dirty rows of a log: counted under the first check that they fail, and skipped; strict reading refuses them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from latecomer.errors import LogError

_NAMED = 3
"""Rows that a refusal names."""


@dataclass(frozen=True)
class RowCheck:
    """A rule for a row, and the remedy where it does not hold."""

    reason: str
    """Short, and the key of the count: "conversion before decision"."""
    fails: pl.Expr
    """True where the row is dirty; null counts as clean."""
    remedy: str
    guess: Callable[[pl.LazyFrame], str] | None = None
    """Finds a likelier remedy in the rows that fail; nothing where they suggest none."""


@dataclass(frozen=True)
class RowCounts:
    """Every row once: rows = used + Σ skipped."""

    rows: int
    skipped: dict[str, int] = field(default_factory=dict)
    """Rows by reason, the reasons that occur alone."""
    remedy: str = ""
    """Remedies for these reasons, that for the most frequent first."""

    @property
    def used(self) -> int:
        """Rows that passed every check."""
        return self.rows - sum(self.skipped.values())

    @property
    def warning(self) -> str:
        """A sentence where more than half of the rows were skipped, else nothing."""
        dirty = self.rows - self.used
        if 2 * dirty <= self.rows:
            return ""
        return (
            f"WARNING: {dirty:,} of {self.rows:,} rows were skipped, more than half: all that is said rests on the "
            f"other {self.used:,}."
        )

    def __str__(self) -> str:
        dirty = self.rows - self.used
        return f"{dirty:,} of {self.rows:,} rows skipped: {_list_reasons(self.skipped)}"


def label_rows(checks: Sequence[RowCheck]) -> pl.Expr:
    """Give each row the reason of the first check that it fails; null where it passes all."""
    reasons = pl.Enum([check.reason for check in checks])
    labels = [pl.when(check.fails).then(pl.lit(check.reason, dtype=reasons)) for check in checks]
    return pl.coalesce(labels)


def count_rows(
    rows: pl.LazyFrame, checks: Sequence[RowCheck], *, name: str, shown: Sequence[str], strict: bool
) -> RowCounts:
    """Count the rows by their label, and refuse a log without a clean row, or, where strict, with a dirty one.

    Parameters
    ----------
    rows
        With the columns `skipped`, from `label_rows`, and `row`, its number from 1.
    checks
        Those that the labels are from.
    name
        The log, in messages.
    shown
        Columns to name a dirty row by.
    strict
        Refuse dirty rows.
    """
    counts = count_labels(rows, checks)
    refuse_dirt(counts, name=name, strict=strict, first=lambda: find_first(rows, shown))
    return counts


def count_labels(rows: pl.LazyFrame, checks: Sequence[RowCheck]) -> RowCounts:
    """Count the rows by their label."""
    labels = rows.group_by("skipped").len().collect(engine="streaming")
    found: dict[str | None, int] = dict(labels.iter_rows())
    return RowCounts(
        rows=sum(found.values()),
        skipped=(skipped := {check.reason: found[check.reason] for check in checks if check.reason in found}),
        remedy=_find_remedies(rows, skipped, checks),
    )


def refuse_dirt(counts: RowCounts, *, name: str, strict: bool, first: Callable[[], str]) -> None:
    """Refuse a log without a clean row, or, where strict, with a dirty one; `first` names the first of those."""
    if not counts.rows:
        raise LogError(f"{name} must hold decisions; it has no row")
    if not counts.used:
        raise LogError(f"{name} must hold rows that can be used; {describe_skipped(counts)}; {first()}")
    if strict and counts.skipped:
        dirty = counts.rows - counts.used
        raise LogError(
            f"{name} must have no dirty row where reading is strict; {dirty:,} of {counts.rows:,} are: "
            f"{_list_reasons(counts.skipped)}; {first()}; {counts.remedy}; or leave out strict=True "
            "(on the command line, leave out --strict) to skip them"
        )


def describe_skipped(counts: RowCounts) -> str:
    """Describe the counts in words, with the remedies, the most frequent reason first; nothing where no row went."""
    return f"{counts}; {counts.remedy}" if counts.skipped else ""


def _find_remedies(rows: pl.LazyFrame, skipped: Mapping[str, int], checks: Sequence[RowCheck]) -> str:
    """Say what to do about each reason: what its rows suggest, else the check's own remedy."""
    remedies = []
    for check in sorted(checks, key=lambda check: -skipped.get(check.reason, 0)):
        if check.reason in skipped:
            guess = "" if check.guess is None else check.guess(rows.filter(pl.col("skipped") == check.reason))
            remedies.append(guess or check.remedy)
    return "; ".join(dict.fromkeys(remedies))


def _list_reasons(skipped: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} × {reason}" for reason, count in skipped.items())


def find_first(rows: pl.LazyFrame, shown: Sequence[str]) -> str:
    """Name the first dirty rows by these columns."""
    dirty = rows.filter(pl.col("skipped").is_not_null()).select("row", *shown).sort("row").head(_NAMED).collect()
    return "the first, counted from 1 without the header: " + "; ".join(
        f"row {number:,} ({', '.join(f'{name} {cell or None!r:.40}' for name, cell in zip(shown, cells, strict=True))})"
        for number, *cells in dirty.iter_rows()
    )
