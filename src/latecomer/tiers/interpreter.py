"""States and rings as kernels see them when they run as plain Python: records with attributes, over the same memory.

In machine code a state is one record of a structured array, and `state.rounds += 1` writes to it. NumPy's own records
have no attributes, so these views give them: numbers are read and written in place, arrays are views.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Records = npt.NDArray[np.void]

_FORMATS = {"float64": "d", "int64": "q", "uint64": "Q"}


class StateView:
    """One state record. Its numbers are properties and its arrays attributes; see `_view_class`."""

    algorithm: str
    """The key of the algorithm: the name of the record's first field."""

    def __init__(self, record: Records) -> None:
        self._record = record
        memory = record.view(np.uint8).data
        self._numbers: dict[str, Any] = {"d": memory.cast("d"), "q": memory.cast("q"), "Q": memory.cast("Q")}

    def __getattr__(self, name: str) -> Any:
        """Make the view of an array field on its first use."""
        try:
            found = self._record[name][0]
        except ValueError:
            raise AttributeError(f"the state has no field {name!r}") from None
        self.__dict__[name] = found
        return found


def _number(code: str, place: int) -> property:
    def get(view: StateView) -> Any:
        return view._numbers[code][place]

    def put(view: StateView, value: Any) -> None:
        view._numbers[code][place] = value

    return property(get, put)


@cache
def _view_class(dtype: np.dtype[np.void]) -> type[StateView]:
    """Make the class of views of one kind of state, with a property for every number."""
    fields: Mapping[str, Any] = dtype.fields or {}
    names = dtype.names or ()
    numbers = {
        name: _number(_FORMATS[fields[name][0].name], fields[name][1] // 8)
        for name in names[1:]
        if not fields[name][0].shape
    }
    return type("StateView", (StateView,), {**numbers, "algorithm": names[0]})


_COMMON = 5
"""The number of a block's fields that every algorithm has; those of its own come after them."""


class BlockView:
    """One block of a ring: the arrays of its rounds."""

    __slots__ = ("__dict__", "action", "arrival", "credit", "norm", "stamp")

    def __init__(self, ring: Records, place: int) -> None:
        self.action, self.norm, self.credit = ring["action"][place], ring["norm"][place], ring["credit"][place]
        self.stamp, self.arrival = ring["stamp"][place], ring["arrival"][place]
        for name in ring.dtype.names[_COMMON:]:  # type: ignore[index]
            setattr(self, name, ring[name][place])


class RingView:
    """A ring whose blocks have attributes."""

    def __init__(self, ring: Records) -> None:
        self._ring = ring
        self._blocks: dict[int, BlockView] = {}
        self.shape = ring.shape

    def __getitem__(self, place: int) -> BlockView:
        """Return one block."""
        found = self._blocks.get(place)
        if found is None:
            found = self._blocks[place] = BlockView(self._ring, place)
        return found


def view(value: Any) -> Any:
    """Return an argument of a kernel as plain Python needs it: the array of one state, a ring, or anything else."""
    if not isinstance(value, np.ndarray) or not value.dtype.names:
        return value
    if value.dtype.names[0] == "action":
        return RingView(value)
    return [_view_class(value.dtype)(value)]


def interpret(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a kernel as plain Python on the arguments that its machine code would take."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return function(*map(view, arguments))
