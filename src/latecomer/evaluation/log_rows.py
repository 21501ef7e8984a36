"""Rows of a log of decisions, parsed and checked; every row that cannot be right has its reason."""

from collections.abc import Sequence

import polars as pl

from latecomer.delays.readers.conversion_log_columns import TIME_CHECKS, parse_times
from latecomer.delays.readers.row_checks import RowCheck, label_rows
from latecomer.delays.readers.table_source import NO_TIME, LogSource, name_source, scan_source
from latecomer.errors import LogError
from latecomer.evaluation.layout import LogLayout

_TRUE, _FALSE = ("1", "1.0", "true", "t", "yes", "y"), ("0", "0.0", "false", "f", "no", "n")
_REPLACED = "\N{REPLACEMENT CHARACTER}"

_LEADS = pl.col("position") == 1
"""True of a decision by itself, and of the first of a ranking: those whose propensity is that of a choice."""
LATER_POSITION = "later position of a ranking"
"""Reasons for which a clean row has no part in an evaluation."""

POSITION_CHECK = RowCheck(
    "position out of range",
    pl.col("position_given").is_not_null() & ~(pl.col("position") >= 1).fill_null(value=False),
    "positions of a ranking are whole numbers from 1; leave the cell empty where an action was shown by itself",
)
EXAMINATION_CHECK = RowCheck(
    "examination out of range",
    pl.col("examination_given").is_not_null()
    & ~pl.col("examination").is_between(0.0, 1.0, closed="right").fill_null(value=False),
    "an examination is the probability that a position is looked at: above 0 and at most 1",
)
PROPENSITY_CHECKS = (
    RowCheck(
        "no propensity",
        _LEADS & pl.col("propensity_given").is_null(),
        "log the probability with which the action was chosen; without it a round says nothing on other policies",
    ),
    RowCheck(
        "propensity out of range",
        _LEADS
        & (
            ~pl.col("propensity").is_between(0.0, 1.0 + 1e-9, closed="right").fill_null(value=False)
            | pl.col("propensity").is_nan()
        ),
        "a propensity is a probability above 0 and at most 1: the chance that the logged action had",
    ),
)
VALUE_CHECKS = (
    RowCheck(
        "conversion without a value",
        pl.col("converted").is_not_null() & pl.col("value_given").is_null(),
        "give every conversion its value, or leave out the column",
    ),
    RowCheck(
        "value out of range",
        pl.col("converted").is_not_null()
        & ((pl.col("value") < 0.0) | ~pl.col("value").is_finite() | pl.col("value").is_null()),
        "a value is a finite number of at least 0",
    ),
)
FLAG_CHECK = RowCheck(
    "unreadable flag of conversion",
    pl.col("converted_flag").is_null() & pl.col("converted_given").is_not_null(),
    "write 1 where a decision converted, 0 or nothing where it did not",
)
NO_ACTION = RowCheck("no action", pl.col("action").is_null(), "give every row the action that was chosen")
NOT_UTF8 = RowCheck(
    "action is not UTF-8",
    pl.col("action").str.contains(_REPLACED, literal=True),
    "save the log as UTF-8: its action ids have other bytes",
)
OFFER_CHECKS = (
    RowCheck(
        "no actions offered",
        pl.col("offer").is_null() | (pl.col("offer").list.len() == 0),
        "log the actions that were offered in every round",
    ),
    NO_ACTION,
    RowCheck(
        "unknown action",
        ~pl.col("action").is_between(0, pl.col("offer").list.len().cast(pl.Int64) - 1),
        "the chosen action is an index from 0 into the round's own offer",
    ),
)
RAGGED = RowCheck(
    "ragged actions",
    (pl.col("offer").list.eval(pl.element().list.len()).list.n_unique() != 1)
    | pl.col("offer").list.eval(pl.element().is_null()).list.any(),
    "every action of an offer has as many features",
)
NOT_FINITE = RowCheck(
    "feature not finite",
    pl.col("offer")
    .list.eval(pl.element().list.eval(~pl.element().is_finite().fill_null(value=False)).list.any())
    .list.any(),
    "leave out rounds whose features are not known",
)


def parse_rows(source: LogSource, layout: LogLayout) -> tuple[pl.LazyFrame, Sequence[RowCheck]]:
    """Scan a source into the log's own columns, with the reason of a dirty row in `skipped`.

    The columns: row, decided and converted in seconds, action (the item's id, or its index in the offer), propensity,
    value, control, position (1 where there is none), examination, recorded (the row that the service recorded, null
    elsewhere), key (a hash of the decision's id), offer, and the context's. A later position of a ranking has no
    propensity: the chance to be there depends on the actions before it.
    """
    table = scan_source(source, layout.names())
    types = table.collect_schema()
    if layout.converted is not None:
        table = _read_flag(table)
    rows = parse_times(table, name_source(source))
    checks = [*TIME_CHECKS, *([] if layout.converted is None else [FLAG_CHECK])]
    rows, own = _read_action(rows, layout, types, name_source(source))
    checks += own
    rows, own = _read_ranking(rows, layout, types)
    checks += own
    if layout.propensity is not None:
        rows = _read_number(rows, "propensity")
        checks += PROPENSITY_CHECKS
    if layout.value is not None:
        rows = _read_number(rows, "value")
        checks += VALUE_CHECKS
    rows = rows.with_columns(
        pl.col("value") if layout.value is not None else pl.lit(1.0).alias("value"),
        pl.col("propensity") if layout.propensity is not None else pl.lit(None, pl.Float64).alias("propensity"),
        control=pl.lit(value=False) if layout.control is None else _is_true(pl.col("control"), types["control"]),
        key=pl.lit(0, pl.UInt64) if layout.decision_id is None else pl.col("decision_id").hash(),
    )
    rows = rows.with_columns(pl.col("decided_at", "converted_at").cast(pl.String))  # to be quoted
    rows = rows.with_columns(skipped=label_rows(checks), propensity=pl.when(_LEADS).then(pl.col("propensity")))
    if layout.revoked is not None:  # after the checks, for which a conversion without a time is unreadable
        stays = ~_is_true(pl.col("revoked"), types["revoked"])
        rows = rows.with_columns(converted=pl.when(stays).then(pl.col("converted")))
    return rows, checks


def kept_columns(layout: LogLayout) -> list[str]:
    """Return the columns of a clean row."""
    context = [f"context:{column}" for column in layout.context]
    offer = [] if layout.offer is None else ["offer"]
    own = ["row", "decided", "converted", "action", "propensity", "value", "control"]
    return [*own, "position", "examination", "recorded", *offer, *context]


def keep_first_positions(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Leave out the later positions of rankings."""
    return rows.filter(_LEADS)


def _read_ranking(rows: pl.LazyFrame, layout: LogLayout, types: pl.Schema) -> tuple[pl.LazyFrame, list[RowCheck]]:
    """Read the position, the examination, and the row that was recorded; null where the log has none of these."""
    checks = []
    position, examination = pl.lit(1, pl.Int64), pl.lit(1.0)
    if layout.position is not None:
        rows = _read_number(rows, "position")
        position = pl.when(pl.col("position_given").is_null()).then(1).otherwise(_as_whole(pl.col("position")))
        checks.append(POSITION_CHECK)
    if layout.examination is not None:
        rows = _read_number(rows, "examination")
        examination = pl.when(pl.col("examination_given").is_null()).then(1.0).otherwise(pl.col("examination"))
        checks.append(EXAMINATION_CHECK)
    recorded, dtype = pl.lit(None, pl.List(pl.Float64)), types.get("recorded")
    if isinstance(dtype, pl.List | pl.Array) and dtype.inner is not None and dtype.inner.is_numeric():
        row = pl.col("recorded").arr.to_list() if isinstance(dtype, pl.Array) else pl.col("recorded")
        recorded = row.cast(pl.List(pl.Float64))
    return rows.with_columns(position=position, examination=examination, recorded=recorded), checks


def _as_whole(number: pl.Expr) -> pl.Expr:
    """Return a number as an integer; null where it is none."""
    return pl.when(number == number.floor()).then(number.cast(pl.Int64, strict=False))


def _read_action(
    rows: pl.LazyFrame, layout: LogLayout, types: pl.Schema, name: str
) -> tuple[pl.LazyFrame, list[RowCheck]]:
    dtype = types["action"]
    if layout.offer is None:
        text = pl.col("action")
        if dtype.is_float():  # a column of whole numbers with holes, as pandas has it
            text = pl.when(text == text.floor()).then(text.cast(pl.Int64, strict=False).cast(pl.String))
        elif dtype != pl.String:
            text = text.cast(pl.String)
        rows = rows.with_columns(action=pl.when(~text.is_in(NO_TIME)).then(text))
        checks = [NO_ACTION, NOT_UTF8]
        if layout.items is not None:
            known = pl.col("action").is_in(layout.items)
            checks.append(RowCheck("unknown action", ~known, "list every item in actions, or leave the list out"))
        return rows, checks
    offer = types["offer"]
    if isinstance(offer, pl.Array):
        rows, offer = rows.with_columns(offer=pl.col("offer").arr.to_list()), pl.List(offer.inner)
    if not isinstance(offer, pl.List) or not isinstance(offer.inner, pl.List | pl.Array | pl.Struct):
        raise LogError(
            f"{name} must have {layout.offer} as lists of actions, each a list of numbers or a record; got {offer}: "
            "write the log as Parquet, which has lists"
        )
    if isinstance(offer.inner, pl.Array):
        offer = pl.List(pl.List(offer.inner.inner))
        rows = rows.with_columns(offer=pl.col("offer").cast(offer))
    rows = rows.with_columns(action=pl.col("action").cast(pl.Int64, strict=False))
    is_numbers = isinstance(offer.inner, pl.List)
    return rows, [*OFFER_CHECKS, *([RAGGED, NOT_FINITE] if is_numbers else [])]


def _read_number(rows: pl.LazyFrame, name: str) -> pl.LazyFrame:
    """Cast a column to numbers; null where it cannot be read, beside `NAME_given`."""
    given = pl.col(name)
    return rows.with_columns(given.alias(f"{name}_given"), given.cast(pl.Float64, strict=False).alias(name))


def _read_flag(table: pl.LazyFrame) -> pl.LazyFrame:
    """Make `converted_at` the decision's own time where the flag is set."""
    given = pl.col("converted")
    text = given.cast(pl.String).str.to_lowercase()
    no = text.is_in(_FALSE) | text.is_in(NO_TIME) | text.is_null()
    flag = pl.when(text.is_in(_TRUE)).then(statement=True).when(no).then(statement=False)
    table = table.with_columns(converted_given=given, converted_flag=flag).drop("converted")
    return table.with_columns(converted_at=pl.when(pl.col("converted_flag")).then(pl.col("decided_at")))


def _is_true(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Read a flag; empty is false."""
    flag = column if dtype == pl.Boolean else column.cast(pl.String).str.to_lowercase().is_in(_TRUE)
    return flag.fill_null(value=False)
