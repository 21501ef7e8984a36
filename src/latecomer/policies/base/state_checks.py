"""Checks of the arrays of a saved state: what a damaged file could make kernels misread is refused."""

from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.state import ROUNDS_PER_BLOCK, ExtraFields, FieldKind


def fill_field(field: npt.NDArray[Any], values: npt.NDArray[Any], name: str) -> None:
    """Copy values of exactly the field's shape and type: NumPy would stretch and convert others."""
    if values.shape != field.shape or values.dtype != field.dtype:
        raise ValueError(
            f"{name} has shape {values.shape} and type {values.dtype}, not {field.shape} and {field.dtype}"
        )
    if name != "credit" and not np.isfinite(values).all():
        raise ValueError(f"{name} is not finite")
    field[...] = values


def check_window(record: npt.NDArray[Any], slots: int) -> None:
    """Refuse a window that does not fit a ring of so many slots."""
    head, oldest, rounds = (record[name].item() for name in ("head", "oldest", "rounds"))
    closed = oldest - record["kept"].item()
    if not (
        0 <= closed < oldest
        and rounds >= oldest - 1
        and 0 <= head < slots
        and (head - oldest + 1) % ROUNDS_PER_BLOCK == 0
        and 0 <= record["pending"] <= rounds - oldest + 1
    ):
        raise ValueError("its window does not fit together")
    if (oldest - closed - 1) % ROUNDS_PER_BLOCK + closed + rounds - oldest + 1 > slots:
        raise ValueError("its window holds more than it has room for")


def check_extras(record: npt.NDArray[Any], extras: ExtraFields) -> None:
    """Refuse values that would make kernels read outside the ring, or misread the delay curve."""
    for name, field in extras.items():
        values = record[name][0]
        if field.kind is FieldKind.POINTER:
            if not ((record["oldest"] <= values) & (values <= record["rounds"] + 1)).all():
                raise ValueError(f"{name} points outside of its window")
        elif field.kind is FieldKind.BIN_EDGES:
            if not np.array_equal(values, field.initial):
                raise ValueError("its bins are not those of its window")
        elif field.kind is FieldKind.DELAY_CURVE and not (
            values[0] in (0, 1) and values[-1] == 1 and (np.diff(values) >= 0).all()
        ):
            raise ValueError("its delay curve does not rise from 0 to 1")
