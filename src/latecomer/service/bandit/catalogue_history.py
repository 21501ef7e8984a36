"""Earlier versions of a catalogue, and the offers of decisions that were made among them."""

import numpy as np
from msgspec import structs

from latecomer.service.bandit import events
from latecomer.service.bandit.bandit_view import BanditView
from latecomer.service.bandit.catalogue import Catalogue, CatalogueChange, read_change
from latecomer.service.bandit.logged_choices import LoggedChoice, RowsFrom
from latecomer.service.bandit.offers import Offer


def rebuild_version(view: BanditView, rows_from: RowsFrom, *, version: int, round: int) -> Catalogue | None:
    """Return the catalogue as it was at a round; None where the log lacks a change between then and now."""
    catalogue = view.catalogue.share()
    if version == catalogue.version:
        return catalogue
    changes: dict[int, CatalogueChange] = {}
    for row in rows_from(view.number, round):
        payload = events.Payload(row.payload, view.info.dim)
        for number in payload.numbers(events.CATALOGUE).tolist():
            change = read_change(payload.text(number))
            changes[change.version] = change
    for undone in range(catalogue.version, version, -1):
        if undone not in changes:
            return None
        catalogue.undo(changes[undone])
    return catalogue


def fill_offer(offer: Offer, catalogue: Catalogue) -> Offer | None:
    """Return the offer with the actions that it stands for; None where the catalogue lacks one."""
    excluded = set(offer.excluded)
    ids = offer.ids if offer.ids is not None else [id_ for id_ in catalogue.ids if id_ not in excluded]
    if not all(id_ in catalogue.places for id_ in ids):
        return None
    taken = catalogue.take(ids)
    features = None if taken.features is None else [dict(each) for each in taken.features]
    return structs.replace(offer, ids=ids, rows=taken.vectors, features=features)


def find_actions(view: BanditView, rows_from: RowsFrom, choice: LoggedChoice) -> LoggedChoice:
    """Return a decision among a catalogue with the actions of that time, and its place among them."""
    if choice.offer is None or choice.offer.version is None:
        return choice
    catalogue = rebuild_version(view, rows_from, version=choice.offer.version, round=choice.round)
    return place_choice(choice, None if catalogue is None else fill_offer(choice.offer, catalogue))


def place_choice(choice: LoggedChoice, offer: Offer | None) -> LoggedChoice:
    """Return a decision with its actions; without them, where its id is none of theirs."""
    ids = [] if offer is None or offer.ids is None else offer.ids
    if choice.label is None or choice.label not in ids:
        return structs.replace(choice, offer=None)
    return structs.replace(choice, offer=offer, index=int(np.argmax([id_ == choice.label for id_ in ids])))
