"""Approximate search in a large catalogue: an index of maximum inner products (faiss), built in the background.

Each coordinate is kept in 4 bits, and a query scans all codes; the `_NEAR` best of the scan are scored again, exactly.
So an index is made in seconds, needs no graph, and finds the best of any kind of vectors. What has been put since it
was built is scored exactly beside it, and a withdrawn action is no longer found; after many changes it is built anew.
"""

from collections.abc import Sequence
from threading import Thread
from typing import Any

import numpy as np

from latecomer.core.state import Array, Integers
from latecomer.extras import require_packages
from latecomer.policies.base.search import ExactSearch, rank_by_score
from latecomer.service.bandit.catalogue import Catalogue

LEAST = 10_000
"""Actions from which an index is faster than a matrix product."""
_NEAR = 256
"""Actions of the scan that are scored exactly."""
_TRAINED = 4096
"""Actions that the levels of the 4 bits are learnt from."""
_ITERATIONS = 10
_MOST_EXCLUDED = 1000
_CHANGED_SHARE = 0.05
"""Share of changed actions above which the index is built anew."""


class BuiltIndex:
    """An index of one version of a catalogue, the ids that have been put since, and where its actions are now."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue: Catalogue | None = catalogue
        self.changed = dict[str, None]()
        self.codes: Any = None
        self._known = catalogue.places
        """Places as of the build, by id."""
        self._places: Integers = np.arange(len(catalogue))
        """Places now, by those as of the build; -1 where an action was withdrawn."""
        self._beside: tuple[int, Integers] = (-1, np.empty(0, np.int64))

    def note_removal(self, id_: str, place: int, moved: str) -> None:
        """Note that an action was withdrawn, whose place another one has taken."""
        for known, now in ((self._known.get(moved), place), (self._known.get(id_), -1)):
            if known is not None and self._places[known] >= 0:
                self._places[known] = now

    def find_beside(self, catalogue: Catalogue) -> Integers:
        """Return the places of the actions that have been put since, in the catalogue as it is now."""
        if self._beside[0] != catalogue.version:
            found = [catalogue.places[id_] for id_ in self.changed if id_ in catalogue.places]
            self._beside = catalogue.version, np.array(found, np.int64)
        return self._beside[1]

    def build(self) -> None:
        """Build it: seconds for 100,000 actions, in which Python's lock is free."""
        import faiss  # noqa: PLC0415 - it takes a tenth of a second, and few need it

        if self._catalogue is None:
            return
        rows = np.ascontiguousarray(self._catalogue.vectors)
        faiss.omp_set_num_threads(1)
        codes = faiss.IndexPQFastScan(rows.shape[1], rows.shape[1], 4, faiss.METRIC_INNER_PRODUCT)
        codes.pq.cp.niter = _ITERATIONS
        codes.train(rows[:: max(1, len(rows) // _TRAINED)])
        codes.add(rows)
        self.codes, self._catalogue = codes, None

    def scan(self, thetas: Array, near: int) -> list[Integers]:
        """Return the places of about the best for each θ̃, but for those that were withdrawn."""
        hits = self.codes.search(thetas.astype(np.float32), min(near, len(self._places)))[1]
        found = [self._places[row[row >= 0]] for row in hits]
        return [row[row >= 0] for row in found]


class IndexKeeper:
    """The index of a catalogue that is searched, and the one that is being built, if any."""

    def __init__(self) -> None:
        self.current: BuiltIndex | None = None
        self.building: Thread | None = None
        self._next: BuiltIndex | None = None

    def note_put(self, ids: Sequence[str]) -> None:
        """Note ids whose vectors an index does not have."""
        for index in (self.current, self._next):
            if index is not None:
                index.changed.update(dict.fromkeys(ids))

    def note_removal(self, id_: str, place: int, moved: str) -> None:
        """Note that an action was withdrawn, whose place another one has taken."""
        for index in (self.current, self._next):
            if index is not None:
                index.note_removal(id_, place, moved)

    def refresh(self, catalogue: Catalogue) -> None:
        """Begin to build an index where there is none, or where much has changed; the store's lock is held."""
        current = self.current
        if self.building is not None or (
            current is not None and len(current.changed) <= max(_NEAR, _CHANGED_SHARE * len(catalogue))
        ):
            return
        self._next = made = BuiltIndex(catalogue.share())

        def run() -> None:
            try:
                made.build()
                self.current = made
            finally:
                self._next = self.building = None

        self.building = Thread(target=run, name="latecomer-index", daemon=True)
        self.building.start()

    def wait(self) -> None:
        """Wait for the index that is being built."""
        building = self.building
        if building is not None:
            building.join()


class IndexSearch(ExactSearch):
    """All actions of a catalogue but some; the best are found by an index, and scored exactly."""

    is_exact = False

    def __init__(self, catalogue: Catalogue, index: BuiltIndex, excluded: Integers) -> None:
        super().__init__(catalogue.vectors, catalogue.summarise(excluded), excluded)
        self._catalogue, self._index = catalogue, index

    def find_best(self, thetas: Array, k: int, bonus: Array | None = None) -> Integers:
        """Return the indices of about the k largest ⟨a, θ̃⟩ for each row of `thetas`."""
        beside, rows = self._index.find_beside(self._catalogue), self.rows
        found = np.empty((len(thetas), k), np.int64)
        for row, hits in enumerate(self._index.scan(thetas, _NEAR + len(self._excluded) + k)):
            near = np.unique(np.concatenate((hits, beside)))
            near = near[~np.isin(near, self._excluded)] if len(self._excluded) else near
            if len(near) < k:
                return super().find_best(thetas, k, bonus)
            found[row] = rank_by_score(near, rows[near].astype(np.float64) @ thetas[row], k)
        return found


def find_index(catalogue: Catalogue, excluded: Integers) -> IndexSearch | None:
    """Return the approximate search of a catalogue; None where it is small, or its first index is being built."""
    require_packages('search="approximate"', "faiss")
    if len(catalogue) < LEAST or len(excluded) > _MOST_EXCLUDED:
        return None
    if catalogue.index is None:
        catalogue.index = IndexKeeper()
    keeper: IndexKeeper = catalogue.index
    keeper.refresh(catalogue)
    return None if keeper.current is None else IndexSearch(catalogue, keeper.current, excluded)
