"""The part of a catalogue that a decision chooses from: candidates, exclusions, and how the best is searched for."""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from msgspec import Struct

from latecomer.core.state import Array, Integers
from latecomer.errors import InputError
from latecomer.policies.base.search import ExactSearch
from latecomer.service.bandit.catalogue import Catalogue, Features
from latecomer.service.bandit.catalogue_checks import check_ids
from latecomer.service.bandit.offers import pack_catalogue_offer
from latecomer.service.features import encode_features, encode_prepared, prepare_features
from latecomer.validation import check_choice, short_repr

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit

SEARCHES = ("exact", "approximate")
FindIndex = Callable[[Catalogue, Integers], ExactSearch | None]
"""Returns an approximate search without some places; None where no index has been made yet."""


class CataloguePick(Struct, frozen=True, kw_only=True):
    """The wishes of a decision among a catalogue; `find_index` is there where an approximate search will do."""

    context: Features | None = None
    candidates: Sequence[str] | None = None
    excluded: Sequence[str] = ()
    find_index: FindIndex | None = None

    def digest(self) -> bytes:
        """Return bytes that identify it as the body of a request."""
        parts = (self.context, self.candidates, self.excluded, self.find_index is not None)
        return blake2b(msgspec.json.encode(parts, order="deterministic"), digest_size=16).digest()


class PickedActions(Struct, frozen=True, kw_only=True):
    """The actions of a decision among a catalogue: rows and their ids, or a search over all its ids; and its offer."""

    ids: Sequence[str]
    offer: bytes
    rows: Array | None = None
    search: ExactSearch | None = None
    control: int | None = None
    """The place of the action that the control plays by its id."""


def check_pick(
    context: Features | None,
    candidates: Sequence[str] | None,
    exclude: Sequence[Any] | None,
    search: Literal["exact", "approximate"],
    find_index: FindIndex,
) -> CataloguePick:
    """Return a pick whose form is right; `InputError` where it is not."""
    check_choice("search", search, SEARCHES)
    for name, ids in (("candidates", candidates), ("exclude", exclude)):
        if ids is not None and not isinstance(ids, list | tuple):
            raise InputError(f"{name} must be a list of ids; got {short_repr(ids)}", field=name)
    excluded = sorted(check_ids(exclude or (), "exclude"))
    if candidates is not None:
        candidates = check_ids(candidates, "candidates")
    if candidates is not None and excluded:
        raise InputError(
            "exclude must be left out where there are candidates: leave those out of them", field="exclude"
        )
    if candidates is not None and not candidates:
        raise InputError(
            "candidates must be at least one id, or be left out for the whole catalogue", field="candidates"
        )
    return CataloguePick(
        context=context,
        candidates=candidates,
        excluded=excluded,
        find_index=find_index if search == "approximate" else None,
    )


def pick_actions(bandit: "Bandit", pick: CataloguePick, *, needs_rows: bool = False) -> PickedActions:
    """Return the actions that a decision chooses from, as the catalogue has them now: rows, where those are needed."""
    catalogue, control_id = bandit.catalogue, bandit.descriptor.control_id
    if not len(catalogue):
        raise InputError("the catalogue has no actions: put some, or send them with the decision", field="actions")
    if pick.context is not None and catalogue.features is None:
        raise InputError("context is for a catalogue of actions with features; this one has vectors", field="context")
    if pick.find_index is not None:
        _check_approximate(bandit)
    offer = pack_catalogue_offer(catalogue.version, pick.candidates, pick.excluded, pick.context)
    places: Integers | None = None
    if pick.candidates is not None:
        places = _find_candidates(catalogue, pick.candidates)
        rows = take_rows(bandit, pick.context, places)
        ids: Sequence[str] = pick.candidates
    else:
        excluded = _find_excluded(catalogue, pick.excluded)
        search = None if needs_rows else _find_search(bandit, pick, excluded)
        if search is not None:
            control = None if control_id is None else catalogue.places.get(control_id)
            return PickedActions(ids=catalogue.ids, offer=offer, search=search, control=control)
        if len(excluded):
            places = np.setdiff1d(np.arange(len(catalogue), dtype=np.int64), excluded)
        rows = take_rows(bandit, pick.context, places)
        ids = catalogue.ids if places is None else [catalogue.ids[place] for place in places.tolist()]
    control = ids.index(control_id) if control_id is not None and control_id in ids else None
    return PickedActions(ids=ids, offer=offer, rows=rows, control=control)


def _find_candidates(catalogue: Catalogue, candidates: Sequence[str]) -> Integers:
    places = [catalogue.places.get(id_, -1) for id_ in candidates]
    if -1 in places:
        place = places.index(-1)
        raise InputError(
            f"candidates must be in the catalogue; {short_repr(candidates[place])} is not, or was withdrawn",
            field=f"candidates[{place}]",
        )
    return np.array(places)


def _find_excluded(catalogue: Catalogue, excluded: Sequence[str]) -> Integers:
    """Return the places of exclusions; ids that the catalogue does not have exclude nothing."""
    found = np.array(sorted(catalogue.places[id_] for id_ in excluded if id_ in catalogue.places), np.int64)
    if len(found) == len(catalogue):
        raise InputError("exclude must leave at least one action of the catalogue", field="exclude")
    return found


def _check_approximate(bandit: "Bandit") -> None:
    """Raise `InputError` where a bandit must see every row, which an index does not show."""
    policy, needed = bandit.policy, ""
    if bandit.contest is not None:
        needed = "a bandit without a challenger, as both policies judge every action"
    elif policy.bounds_actions:
        needed = "a policy without a ceiling or limits, which take the probabilities of all actions"
    elif bandit.catalogue.features is not None or not policy.plays_largest_product:
        needed = (
            "a catalogue of vectors, and a policy that plays the largest ⟨a, θ̃⟩ of a sampled θ̃ (OTFLinTS, LinTS, or "
            "MaturedLinTS without optimism, without a guard)"
        )
    if needed:
        raise InputError(f'search="approximate" needs {needed}: leave it out, or use such', field="search")


def _find_search(bandit: "Bandit", pick: CataloguePick, excluded: Integers) -> ExactSearch | None:
    """Return a search over vectors; None where the policy must see every row."""
    catalogue, policy = bandit.catalogue, bandit.policy
    if catalogue.features is not None or not policy.samples_theta or policy.bounds_actions:
        return None
    found = None if pick.find_index is None else pick.find_index(catalogue, excluded)
    return found or ExactSearch(catalogue.vectors, catalogue.summarise(excluded), excluded)


def take_rows(bandit: "Bandit", context: Features | None, places: Integers | None) -> Array:
    """Return the rows of some actions of the catalogue, or of all, in this context."""
    catalogue, info = bandit.catalogue, bandit.info
    if catalogue.features is None:
        vectors = catalogue.vectors if places is None else catalogue.vectors[places]
        return vectors.astype(np.float64)
    if places is not None and 2 * len(places) < len(catalogue):
        return encode_features(info, context or {}, [catalogue.features[place] for place in places.tolist()])
    version, prepared = catalogue.prepared
    if version != catalogue.version:
        prepared = prepare_features(info, catalogue.features)
        catalogue.prepared = catalogue.version, prepared
    rows = encode_prepared(info, context or {}, prepared)
    return rows if places is None else rows[places]
