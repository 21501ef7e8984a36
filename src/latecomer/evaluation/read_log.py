"""Reading a log of decisions: its layout found, its rows checked, its facts collected."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from latecomer.delays.readers.row_checks import RowCounts, refuse_dirt
from latecomer.delays.readers.table_source import LogSource, list_columns, list_parts, name_source
from latecomer.evaluation.decision_log import DecisionLog, Engine, run_tasks
from latecomer.evaluation.layout import CHOSEN, LogLayout, find_layout
from latecomer.evaluation.log_facts import PartFacts, measure_part
from latecomer.timestamps import Moment, parse_timestamp

DUPLICATE = "duplicate decision id"


def read_log(
    source: LogSource,
    *,
    decided_at: str = "decided_at",
    action: str = "action",
    propensity: str | None = None,
    converted_at: str = "converted_at",
    converted: str | None = None,
    value: str | None = None,
    decision_id: str | None = None,
    revoked: str | None = None,
    control: str | None = None,
    position: str | None = None,
    examination: str | None = None,
    context: str | Sequence[str] | None = None,
    actions: str | Sequence[str] | None = None,
    chosen: str = CHOSEN,
    until: Moment | None = None,
    strict: bool = False,
    engine: Engine | None = None,
) -> DecisionLog:
    """Read a log of decisions, to evaluate policies on it or to learn from it.

    The source is read once, streamed, to count and check its rows, and again by what uses the log: memory stays
    bounded. It must not change meanwhile. Rows may be in any order.

    Parameters
    ----------
    source
        The path of a Parquet file, of a CSV with a header, or of a folder of them; or a table of polars, pandas,
        pyarrow or anything with Arrow's PyCapsule interface. A table with the columns `actions` and `chosen`, as
        `latecomer log export` writes it, needs no other argument.
    decided_at, converted_at
        Columns of times: seconds, or ISO 8601 (UTC where they have no zone). No `converted_at`, no conversion yet.
    action
        The column with the id of the item that was chosen; the items are those that the log mentions, or `actions`.
    propensity
        The column with the probability that the chosen action had; `propensity` where the source has it. A log
        without propensities can be learnt from, and not evaluated.
    converted
        In place of `converted_at`, a column of 0 and 1, where conversions come at once (clicks): every round is
        closed then.
    value
        The column with the value of a conversion, of at least 0; without it, a conversion counts 1.
    decision_id
        The column of ids, by which rows that come twice are counted once.
    revoked, control
        Columns of flags: the conversion was taken back; the round belongs to a control group.
    position, examination
        Of rankings, where each position is a row: the column of the position, from 1, and that of the probability that
        the position is looked at, by which an action is multiplied before it is learnt from. Later positions are
        learnt from; they are not evaluated, and have no propensity.
    context
        Columns that a target policy may see: one, whose cells are the contexts, or several, in a dictionary.
    actions, chosen
        The column of offers (lists of actions, each a list of numbers or a record) with the column of the chosen
        index; or a list of all item ids.
    until
        When watching ended; by default the last moment that the log mentions. What came later is not seen.
    strict
        Refuse a log with a dirty row. By default such rows are skipped, and counted by reason in `skipped`.
    engine
        Where to read the files of a folder, such as a `DaskEngine`; by default, here.

    Examples
    --------
    >>> import latecomer as lc, polars as pl
    >>> table = pl.DataFrame({
    ...     "ts": [0, 60, 120, 180], "item": ["a", "b", "a", "c"], "p": [0.5, 0.25, 0.0, 0.25],
    ...     "bought": [30, None, None, 200],
    ... })
    >>> log = lc.read_log(table, decided_at="ts", action="item", propensity="p", converted_at="bought")
    >>> log.decisions, log.conversions, log.items, log.skipped
    (3, 2, ('a', 'b', 'c'), {'propensity out of range': 1})
    """
    parts = list_parts(source)
    layout = find_layout(
        list_columns(source),
        decided_at=decided_at,
        action=action,
        propensity=propensity,
        converted_at=converted_at,
        converted=converted,
        value=value,
        decision_id=decision_id,
        revoked=revoked,
        control=control,
        position=position,
        examination=examination,
        context=context,
        actions=actions,
        chosen=chosen,
    )
    end = None if until is None else parse_timestamp(until, name="until") / 1e6
    facts: list[PartFacts] = run_tasks(engine, partial(_measure_one, parts, layout), len(parts))
    duplicates = find_duplicates(facts)
    counts = _merge_counts(facts, sum(map(len, duplicates)))
    first_dirty = next((part.first_dirty for part in facts if part.first_dirty), f"the reason is {DUPLICATE}")
    refuse_dirt(counts, name=name_source(source), strict=strict, first=lambda: first_dirty)
    return DecisionLog(
        name=name_source(source),
        layout=layout,
        parts=tuple(parts),
        counts=counts,
        items=layout.items or tuple(sorted({item for part in facts for item in part.items})),
        decisions=counts.used,
        conversions=sum(part.conversions for part in facts),
        first=min(part.first for part in facts),
        last=max(part.last for part in facts),
        until=max(part.end for part in facts) if end is None else end,
        later=_count_later(facts, duplicates),
        later_conversions=sum(part.later_conversions for part in facts),
        least_propensity=min(part.least_propensity for part in facts),
        is_sorted=_are_sorted(facts),
        duplicates=duplicates,
    )


def _measure_one(parts: Sequence[LogSource], layout: LogLayout, number: int) -> PartFacts:
    return measure_part(parts[number], layout)


def find_duplicates(facts: Sequence[PartFacts]) -> tuple[npt.NDArray[np.uint32], ...]:
    """Find, for each part, the rows whose id has been in an earlier row of it or in an earlier part."""
    if not any(len(part.keys) for part in facts):
        return ()
    keys = np.concatenate([part.keys for part in facts])
    order = np.argsort(keys, kind="stable")
    repeated = np.zeros(len(keys), np.bool_)
    repeated[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    starts = np.cumsum([len(part.keys) for part in facts])[:-1]
    return tuple(part.rows[which] for part, which in zip(facts, np.split(repeated, starts), strict=True))


def _merge_counts(facts: Sequence[PartFacts], duplicates: int) -> RowCounts:
    skipped: dict[str, int] = {}
    for part in facts:
        for reason, count in part.counts.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    remedies = [part.counts.remedy for part in facts if part.counts.remedy]
    if duplicates:
        skipped[DUPLICATE] = duplicates
        remedies.append("write each decision once; the first row of an id was kept")
    return RowCounts(sum(part.counts.rows for part in facts), skipped, "; ".join(dict.fromkeys(remedies)))


def _count_later(facts: Sequence[PartFacts], duplicates: Sequence[npt.NDArray[np.uint32]]) -> int:
    """Count the rows of later positions that are no duplicates."""
    repeated = duplicates or [np.empty(0, np.uint32)] * len(facts)
    return sum(len(np.setdiff1d(part.later, rows)) for part, rows in zip(facts, repeated, strict=True))


def _are_sorted(facts: Sequence[PartFacts]) -> bool:
    """Tell whether all rows, part after part, are in the order of their decisions."""
    filled = [part for part in facts if part.counts.used]
    chained = all(one.last <= other.first for one, other in pairwise(filled))
    return chained and all(part.is_sorted for part in filled)
