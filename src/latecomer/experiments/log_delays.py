"""Delays of an experiment file that come from a log of conversions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latecomer.delays import DelayLaw
from latecomer.errors import FileError, InputError

LAW = "log"


def read_log_law(file: str, *, per_day: float | None = None, unit: str | float | None = None) -> DelayLaw:
    """Read the law of the delays in a log, as `latecomer.delays.ConversionLog.law` has it."""
    from latecomer.delays import read_conversions  # noqa: PLC0415 - brings polars

    if not isinstance(file, str):
        raise InputError(f"file must be the path of a log, Parquet or CSV; got {file!r}", field="file")
    try:
        log = read_conversions(file)
    except (FileError, InputError) as error:
        raise InputError(f"file must be a log of conversions: {error}", field="file") from error
    return log.law(per_day=per_day, unit=unit)


def complete_log_laws(value: Any, *, folder: Path, per_day: object) -> Any:
    """Complete tables of logs, however deep: a path begins at the experiment's folder, and its rate is the default."""
    if isinstance(value, list):
        return [complete_log_laws(entry, folder=folder, per_day=per_day) for entry in value]
    if not isinstance(value, Mapping):
        return value
    table = {name: complete_log_laws(entry, folder=folder, per_day=per_day) for name, entry in value.items()}
    if table.get("law") == LAW:
        if isinstance(table.get("file"), str):
            table["file"] = str(folder / table["file"])
        if per_day is not None and not table.keys() & {"per_day", "unit"}:
            table["per_day"] = per_day
    return table
