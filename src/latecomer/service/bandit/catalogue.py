"""A bandit's catalogue: actions kept by id, as vectors or by their features, in versions that the log has.

A change is logged with what it replaces, so that an earlier version follows from a later one and the changes between
them: a pruned log has no beginning, but it has everything after the decisions that it keeps.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from latecomer.core.action_summary import Shorts, summarise_sums
from latecomer.core.state import Integers
from latecomer.errors import DamagedFileError

Vectors = npt.NDArray[np.float32]
Features = Mapping[str, Any]
NO_VECTORS = b""


class Actions(Struct, frozen=True, array_like=True):
    """Some actions: ids, and for each a row of single precision or features by name."""

    ids: Sequence[str] = ()
    vectors: bytes = NO_VECTORS
    features: Sequence[Features] | None = None

    def read_vectors(self) -> Vectors:
        """Return the rows, (K, d)."""
        return np.frombuffer(self.vectors, "<f4").reshape(len(self.ids), -1)


class CatalogueChange(Struct, frozen=True, array_like=True):
    """One change, as the log has it: the version that it makes, actions put and withdrawn, and what those were."""

    version: int
    put: Actions
    withdrawn: Sequence[str]
    before: Actions


_decoder = msgspec.msgpack.Decoder(CatalogueChange)
_table_decoder = msgspec.msgpack.Decoder(tuple[int, Actions])


def read_change(text: bytes) -> CatalogueChange:
    """Read a change of the log; `ValueError` where it is none."""
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise ValueError(f"it has a change of the catalogue that cannot be read: {error}") from None


class Catalogue:
    """The actions of one version. `share` gives a view that later changes leave alone."""

    def __init__(self, dim: int) -> None:
        self.dim, self.version = dim, 0
        self.ids: list[str] = []
        self.places: dict[str, int] = {}
        self.features: list[Features] | None = None
        self._vectors: Vectors = np.empty((0, dim), np.float32)
        self._total, self._square = np.zeros(dim), 0.0
        self._is_shared = False
        self.prepared: tuple[int, Any] = (0, None)
        """The version, and its features as an encoder has read them; nothing depends on it."""
        self.index: Any = None
        """The index of an approximate search, of this version or an earlier one; nothing depends on it."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def vectors(self) -> Vectors:
        """The rows of all actions, (K, d), where they are vectors."""
        return self._vectors[: len(self.ids)]

    def share(self) -> "Catalogue":
        """Return the catalogue as it is now."""
        view = object.__new__(Catalogue)
        view.__dict__.update(self.__dict__)
        self._is_shared = view._is_shared = True
        view.index = None
        return view

    def summarise(self, without: Integers) -> Shorts:
        """Summarise all vectors but some; the sums of all are kept."""
        left_out = self._vectors[without].astype(np.float64)
        square = self._square - float(np.square(left_out).sum())
        return summarise_sums(self._total - left_out.sum(axis=0), square, len(self) - len(without))

    # ---- changes ----

    def make_change(self, put: Actions, withdraw: Sequence[str], *, replace: bool) -> CatalogueChange:
        """Return the change that a request makes; its parts are empty where everything is as it should be already."""
        kept = set() if self.has_other_kind(put) else set(put.ids)
        wanted = [*withdraw, *(id_ for id_ in self.ids if id_ not in kept)] if replace else withdraw
        gone = [id_ for id_ in dict.fromkeys(wanted) if id_ in self.places]
        places = [place for place, id_ in enumerate(put.ids) if not self._has_equal(put, place, id_)]
        changed = take_actions(put, places)
        before = self.take([id_ for id_ in dict.fromkeys((*changed.ids, *gone)) if id_ in self.places])
        return CatalogueChange(self.version + 1, changed, gone, before)

    def has_other_kind(self, put: Actions) -> bool:
        """Tell whether it has vectors where features are put, or features where vectors are."""
        return len(self) > 0 and len(put.ids) > 0 and (self.features is None) != (put.features is None)

    def _has_equal(self, put: Actions, place: int, id_: str) -> bool:
        known = self.places.get(id_)
        if known is None:
            return False
        if put.features is not None:
            return self.features is not None and self.features[known] == put.features[place]
        size = 4 * self.dim
        return bool(self._vectors[known].tobytes() == put.vectors[place * size : (place + 1) * size])

    def take(self, ids: Sequence[str]) -> Actions:
        """Return actions by their ids."""
        places = [self.places[id_] for id_ in ids]
        if self.features is not None:
            return Actions(ids, features=[self.features[place] for place in places])
        return Actions(ids, self._vectors[places].astype("<f4").tobytes()) if ids else Actions()

    def apply(self, change: CatalogueChange) -> None:
        """Apply a change of the log; `ValueError` where it is not of this kind of catalogue."""
        if change.version <= self.version:
            raise ValueError(f"it makes version {change.version} of the catalogue after version {self.version}")
        if self._is_shared:
            self._copy()
        for id_ in change.withdrawn:
            self._remove(id_)
        self._put(change.put)
        self.version = change.version

    def undo(self, change: CatalogueChange) -> None:
        """Take a change back; actions may come to stand in another order."""
        if self._is_shared:
            self._copy()
        is_other = bool(change.before.ids) and (change.before.features is None) != (change.put.features is None)
        known = set() if is_other else set(change.before.ids)
        for id_ in change.put.ids:
            if id_ not in known:
                self._remove(id_)
        self._put(change.before)
        self.version = change.version - 1

    def _copy(self) -> None:
        self.ids, self.places = list(self.ids), dict(self.places)
        self.features = None if self.features is None else list(self.features)
        self._vectors, self._total, self._is_shared = self._vectors.copy(), self._total.copy(), False

    def _put(self, put: Actions) -> None:
        if not put.ids:
            return
        if self.index is not None:
            self.index.note_put(put.ids)
        if put.features is None:
            self._put_vectors(put.ids, put.read_vectors())
            return
        self.features = [] if self.features is None else self.features
        for id_, features in zip(put.ids, put.features, strict=True):
            place = self.places.setdefault(id_, len(self.ids))
            if place == len(self.ids):
                self.ids.append(id_)
                self.features.append(features)
            else:
                self.features[place] = features

    def _put_vectors(self, ids: Sequence[str], rows: Vectors) -> None:
        if rows.shape[1] != self.dim:
            raise ValueError(f"it has vectors of {rows.shape[1]} dimensions for a catalogue of {self.dim}")
        self.features = None
        known = [self.places[id_] for id_ in ids if id_ in self.places]
        self._add_to_sums(self._vectors[known], -1.0)
        for id_ in ids:
            if self.places.setdefault(id_, len(self.ids)) == len(self.ids):
                self.ids.append(id_)
        if len(self.ids) > len(self._vectors):
            room = np.empty((len(self.ids) + len(self.ids) // 4, self.dim), np.float32)
            room[: len(self._vectors)] = self._vectors
            self._vectors = room
        self._vectors[[self.places[id_] for id_ in ids]] = rows
        self._add_to_sums(rows, 1.0)

    def _add_to_sums(self, rows: Vectors, sign: float) -> None:
        wide = rows.astype(np.float64)
        self._total = self._total + sign * wide.sum(axis=0)
        self._square += sign * float(np.square(wide).sum())

    def _remove(self, id_: str) -> None:
        """Remove an action; the last one takes its place."""
        place = self.places.pop(id_, None)
        if place is None:
            return  # of a log whose beginning is missing
        last = self.ids.pop()
        if self.index is not None:
            self.index.note_removal(id_, place, last)
        if self.features is None:
            self._add_to_sums(self._vectors[place : place + 1], -1.0)
            self._vectors[place] = self._vectors[len(self.ids)]
        else:
            moved = self.features.pop()
            if place < len(self.ids):
                self.features[place] = moved
        if place < len(self.ids):
            self.ids[place], self.places[last] = last, place

    # ---- snapshots ----

    def to_bytes(self) -> bytes:
        """Return the whole catalogue."""
        vectors = self.vectors.astype("<f4").tobytes() if self.features is None else NO_VECTORS
        return msgspec.msgpack.encode((self.version, Actions(self.ids, vectors, self.features)))

    def restore(self, data: bytes) -> None:
        """Become the catalogue that `to_bytes` wrote; `DamagedFileError` where it is none."""
        try:
            self.version, actions = _table_decoder.decode(data)
            self._put(actions)
        except (msgspec.MsgspecError, ValueError) as error:
            raise DamagedFileError(f"the catalogue of a snapshot cannot be read: {error}") from None


def take_actions(actions: Actions, places: Sequence[int]) -> Actions:
    """Return some of the actions."""
    if len(places) == len(actions.ids) or not places:
        return actions if places else Actions()
    ids = [actions.ids[place] for place in places]
    if actions.features is not None:
        return Actions(ids, features=[actions.features[place] for place in places])
    return Actions(ids, actions.read_vectors()[places].tobytes())
