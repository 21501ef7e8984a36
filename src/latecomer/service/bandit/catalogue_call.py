"""A change of a bandit's catalogue: checked, applied, and logged where anything changes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from latecomer.errors import InputError
from latecomer.service.bandit import events
from latecomer.service.bandit.catalogue import Actions
from latecomer.service.bandit.catalogue_checks import check_ids, check_put
from latecomer.service.bandit.idempotency import LoggedDecision
from latecomer.service.messages import BanditInfo, CatalogueInfo
from latecomer.validation import check_flag, short_repr

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit

_NOTHING_NEW = events.pack_unknown(events.UNKNOWN, 0, 0)
"""An event of no effect: a change that is made again waits for the commit of its first."""


class CatalogueCall(Struct, frozen=True, kw_only=True):
    """Actions to put and to withdraw; with `replace`, all others are withdrawn."""

    put: Actions
    withdraw: Sequence[str]
    replace: bool
    request: bytes = b""
    lookup: bytes = b""
    body: bytes = b""

    def repeat(self, bandit: "Bandit", known: LoggedDecision, *, shift: int) -> CatalogueInfo:  # noqa: ARG002
        """Do nothing: it has no request id, for the same again changes nothing."""
        raise AssertionError("a change of a catalogue has no request id")

    def check_same_body(self, body: bytes) -> None:
        """Do nothing: see `repeat`."""

    def run(self, bandit: "Bandit", *, now: int, shift: int) -> tuple[CatalogueInfo, bytes, int]:  # noqa: ARG002
        """Change the catalogue; return what it has become, the event for the log, and 1."""
        catalogue = bandit.catalogue
        if catalogue.has_other_kind(self.put) and not self.replace:
            kind = "vectors" if catalogue.features is None else "features"
            raise InputError(
                f"actions must have {kind}, as the catalogue's have: replace all of those, or withdraw them first",
                field="actions",
            )
        change = catalogue.make_change(self.put, self.withdraw, replace=self.replace)
        size = len(catalogue)
        if not change.put.ids and not change.withdrawn:
            return CatalogueInfo(version=catalogue.version, size=size), _NOTHING_NEW, 1
        bandit.has_unlogged_change = True
        catalogue.apply(change)
        bandit.stamp = now
        added = len(catalogue) - size + len(change.withdrawn)
        info = CatalogueInfo(
            version=change.version,
            size=len(catalogue),
            added=added,
            changed=len(change.put.ids) - added,
            withdrawn=len(change.withdrawn),
        )
        return info, events.pack_text(events.CATALOGUE, msgspec.msgpack.encode(change)), 1


def check_catalogue_call(
    info: BanditInfo,
    actions: Mapping[str, Any],
    withdraw: Sequence[str] = (),
    *,
    replace: bool = False,
    size: int = 0,
) -> CatalogueCall:
    """Return a change that fits the bandit; `InputError` where it does not.

    Parameters
    ----------
    info
        The bandit's description.
    actions
        {id: vector}, or {id: {name: value}}.
    withdraw
        Ids to withdraw; those that the catalogue does not have are ignored.
    replace
        Whether all actions that are not given are withdrawn.
    size
        The number of actions that the catalogue has already.
    """
    if not isinstance(actions, Mapping):
        raise InputError(
            f"actions must be a dict, {{id: vector or features}}; got {short_repr(actions)}", field="actions"
        )
    if isinstance(withdraw, str) or not isinstance(withdraw, Sequence):
        raise InputError(f"withdraw must be a list of ids; got {short_repr(withdraw)}", field="withdraw")
    withdraw = check_ids(withdraw, "withdraw")
    replace = check_flag("replace", replace)
    both = next((place for place, id_ in enumerate(withdraw) if id_ in actions), None)
    if both is not None:
        raise InputError(
            f"withdraw must not have ids that are put at once; got {short_repr(withdraw[both])}",
            field=f"withdraw[{both}]",
        )
    put = check_put(info, actions, size=0 if replace else size)
    if replace and not put.ids:
        raise InputError("actions must be at least one where they replace all others", field="actions")
    return CatalogueCall(put=put, withdraw=withdraw, replace=replace)
