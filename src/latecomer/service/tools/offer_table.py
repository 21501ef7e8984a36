"""Logged offers as columns: the context, the actions as rows, their ids and their features."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import polars as pl

from latecomer.service.bandit.offers import Offer, OfferReader
from latecomer.service.features import encode_features
from latecomer.service.messages import BanditInfo

Rows = npt.NDArray[np.float32]


class OfferTable:
    """The offers of a log, read in the order of its rounds; those of a part are taken as a table."""

    def __init__(self, info: BanditInfo) -> None:
        self._info, self._reader = info, OfferReader()
        self._offers: dict[int, Offer] = {}

    def add(self, round: int, data: bytes) -> None:
        """Add the offer of a round; `ValueError` where it cannot be read."""
        self._offers[round] = self._reader.add(round, data)

    def add_repeated(self, round: int, distance: int) -> None:
        """Add the offer of a round that equals an earlier one; without that, which may be pruned, it has none."""
        found = self._reader.find(round, distance)
        if found is not None:
            self._offers[round] = found

    def take(self, rounds: Sequence[int]) -> pl.DataFrame:
        """Return a row for each round, null where its offer was not logged, and forget the offers."""
        offers = [self._offers.get(round_) for round_ in rounds]
        self._offers.clear()
        different = {id(each): each for each in offers if each is not None and each.version is None}
        read = {key: self._read_rows(offer) for key, offer in different.items()}  # each is read once
        rows = [None if offer is None else read.get(id(offer)) for offer in offers]
        return pl.DataFrame(
            {
                "context": _to_texts(None if offer is None else offer.context for offer in offers),
                "actions": _to_lists(rows, self._info.dim),
                "action_ids": pl.Series(
                    [None if offer is None else offer.ids for offer in offers], dtype=pl.List(pl.String)
                ),
                "features": _to_texts(None if offer is None else offer.features for offer in offers),
                "catalogue": pl.Series([None if offer is None else offer.version for offer in offers], dtype=pl.Int64),
            }
        )

    def _read_rows(self, offer: Offer) -> Rows:
        if offer.features is None:
            return offer.read_rows(self._info.dim)
        return encode_features(self._info, offer.context or {}, offer.features).astype(np.float32)


def _to_texts(values: Any) -> pl.Series:
    """Return values as JSON."""
    texts = [None if value is None else msgspec.json.encode(value).decode() for value in values]
    return pl.Series(texts, dtype=pl.String)


def _to_lists(rows: Sequence[Rows | None], dim: int) -> pl.Series:
    """Return a list of actions for each round, without a Python object for each number."""
    known = [(i, each) for i, each in enumerate(rows) if each is not None and len(each)]
    places = np.repeat([i for i, _ in known], [len(each) for _, each in known]).astype(np.int64)
    flat = np.concatenate([np.empty((0, dim), np.float32), *(each for _, each in known)])
    actions = pl.DataFrame({"place": places, "actions": pl.Series(flat, dtype=pl.Array(pl.Float32, dim))})
    lists = actions.group_by("place", maintain_order=True).agg("actions")
    return pl.DataFrame({"place": np.arange(len(rows))}).join(lists, on="place", how="left")["actions"]
