"""The layout of a log of decisions: which of a source's columns is which."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from latecomer.errors import InputError
from latecomer.validation import short_repr

OFFER, CHOSEN = "actions", "chosen"
"""Columns of the service's table: the actions that were offered, and the index of the chosen one."""
RECORDED = "chosen_action"
"""The service's column of what was recorded: the chosen action, times its position's examination."""


_OWN = (
    *("decided_at", "action", "offer", "propensity", "converted_at", "converted", "value", "decision_id", "revoked"),
    *("control", "position", "examination", "recorded"),
)


@dataclass(frozen=True)
class LogLayout:
    """The columns of a log, by their names in the source; None where it has no such column."""

    decided_at: str
    action: str
    """The id of the chosen item; or, where the log has offers, the index of the chosen action in its offer."""
    offer: str | None = None
    """The list of actions that were offered in the round, each a list of numbers or a record of features."""
    items: tuple[str, ...] | None = None
    """Item ids, where they were given; otherwise, those that the log mentions."""
    propensity: str | None = None
    converted_at: str | None = None
    converted: str | None = None
    """A flag in place of `converted_at`, for conversions that come at once: every round is closed."""
    value: str | None = None
    decision_id: str | None = None
    revoked: str | None = None
    control: str | None = None
    position: str | None = None
    """The position in a ranking, from 1."""
    examination: str | None = None
    """The probability that the position is looked at."""
    recorded: str | None = None
    context: tuple[str, ...] = ()
    is_context_whole: bool = False
    """True where the context of a round is the cell of one column, and not a dictionary of columns."""

    def names(self) -> dict[str, str]:
        """Return the source's columns by the names that they are read under."""
        found = {name: column for name in _OWN if (column := getattr(self, name)) is not None}
        return found | {f"context:{column}": column for column in self.context}


def find_layout(
    columns: Collection[str],
    *,
    decided_at: str,
    action: str,
    propensity: str | None,
    converted_at: str,
    converted: str | None,
    value: str | None,
    decision_id: str | None,
    revoked: str | None,
    control: str | None,
    position: str | None,
    examination: str | None,
    context: str | Sequence[str] | None,
    actions: str | Sequence[str] | None,
    chosen: str,
) -> LogLayout:
    """Find the layout of a source with these columns; what is not given has the names of the service's table."""
    is_tidy = actions is None and action not in columns and {OFFER, chosen} <= set(columns)

    def usual(given: str | None, name: str, *, where: bool) -> str | None:
        return name if given is None and where and name in columns else given

    offer = OFFER if is_tidy else actions if isinstance(actions, str) else None
    if context is None:
        context = "context" if is_tidy and "context" in columns else ()
    return LogLayout(
        decided_at=decided_at,
        action=chosen if offer is not None else action,
        offer=offer,
        items=None if actions is None or isinstance(actions, str) else _check_items(actions),
        propensity=usual(propensity, "propensity", where=True),
        converted_at=None if converted is not None else converted_at,
        converted=converted,
        value=usual(value, "value", where=is_tidy),
        decision_id=usual(decision_id, "decision_id", where=is_tidy),
        revoked=usual(revoked, "revoked", where=is_tidy),
        control=usual(control, "control", where=is_tidy),
        position=usual(position, "position", where=is_tidy),
        examination=usual(examination, "examination", where=is_tidy),
        recorded=usual(None, RECORDED, where=is_tidy),
        context=(context,) if isinstance(context, str) else tuple(context),
        is_context_whole=isinstance(context, str),
    )


def _check_items(actions: Sequence[object]) -> tuple[str, ...]:
    items = tuple(str(item) for item in actions)
    if not items or len(set(items)) < len(items):
        raise InputError(
            f"actions must be a column of offers, or the ids of all items, each once; got {short_repr(actions)}",
            field="actions",
        )
    return items
