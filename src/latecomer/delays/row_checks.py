"""Dirty rows of a log: counted under the first check that they fail, and skipped; strict reading refuses them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from latecomer.errors import FileError

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


@dataclass(frozen=True)
class RowCounts:
    """Every row once: rows = used + Σ skipped."""

    rows: int
    skipped: dict[str, int] = field(default_factory=dict)
    """Rows by reason, the reasons that occur alone."""

    @property
    def used(self) -> int:
        """Rows that passed every check."""
        return self.rows - sum(self.skipped.values())

    def __str__(self) -> str:
        dirty = self.rows - self.used
        return f"{dirty:,} of {self.rows:,} rows skipped: {_listed(self.skipped)}"


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
    labels = rows.group_by("skipped").len().collect(engine="streaming")
    found: dict[str | None, int] = dict(labels.iter_rows())
    counts = RowCounts(
        rows=sum(found.values()),
        skipped={check.reason: found[check.reason] for check in checks if check.reason in found},
    )
    if not counts.rows:
        raise FileError(f"{name} must hold decisions; it has no row")
    if not counts.used:
        raise FileError(
            f"{name} must hold rows that can be used; {describe_skipped(counts, checks)}; "
            f"the first: {_first(rows, shown, _NAMED)}"
        )
    if strict and counts.skipped:
        dirty = counts.rows - counts.used
        raise FileError(
            f"{name} must have no dirty row where reading is strict; {dirty:,} of {counts.rows:,} are: "
            f"{_listed(counts.skipped)}; the first: {_first(rows, shown, _NAMED)}; "
            f"{_remedy(counts.skipped, checks)}, or read without strict to skip them"
        )
    return counts


def describe_skipped(counts: RowCounts, checks: Sequence[RowCheck]) -> str:
    """The counts in words, with the remedy for the most frequent reason; nothing where no row was skipped."""
    return f"{counts}; {_remedy(counts.skipped, checks)}" if counts.skipped else ""


def _remedy(skipped: Mapping[str, int], checks: Sequence[RowCheck]) -> str:
    return next(check.remedy for check in checks if check.reason == max(skipped, key=lambda reason: skipped[reason]))


def _listed(skipped: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} × {reason}" for reason, count in skipped.items())


def _first(rows: pl.LazyFrame, shown: Sequence[str], count: int) -> str:
    dirty = rows.filter(pl.col("skipped").is_not_null()).select("row", *shown).sort("row").head(count).collect()
    return "; ".join(
        f"row {number:,} ({', '.join(f'{name} {cell or None!r:.40}' for name, cell in zip(shown, cells, strict=True))})"
        for number, *cells in dirty.iter_rows()
    )
