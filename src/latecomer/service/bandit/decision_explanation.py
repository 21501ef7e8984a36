"""Why this one? A decision's actions judged by the policy, and the features that make the chosen one's estimate."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.service.bandit.bandit_view import BanditView
from latecomer.service.bandit.catalogue_history import find_actions
from latecomer.service.bandit.logged_choices import LoggedChoice, RowsFrom, read_choices
from latecomer.service.bandit.offers import Offer
from latecomer.service.bandit.recent_decisions import read_rows
from latecomer.service.decision_report import ActionReport, ContributionReport, DecisionExplanation
from latecomer.service.features import encode_features
from latecomer.validation import short_repr

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit

MOST_CONTRIBUTIONS = 15
MOST_ACTIONS = 1000
"""Actions that are listed; of more, those of the highest estimates and the chosen one, without propensities."""
DRAWS = 256
"""Draws from which a sampler's propensities are estimated, where it does not state them."""


def find_decision(bandit: "Bandit", decision_id: str) -> int:
    """Return the round of an id; `InputError` where the bandit did not give it, or it has no round."""
    round_ = bandit.find_round(decision_id)
    if not 0 < round_ <= bandit.rounds:
        raise _make_error(decision_id, bandit.deferrals.explain_absence(decision_id))
    return round_


def find_choice(view: BanditView, rows_from: RowsFrom, decision_id: str, round_: int) -> LoggedChoice:
    """Return the decision of a round; `InputError` where the log no longer has it."""
    found = read_choices(view, rows_from, round_, round_)
    if not found:
        raise _make_error(decision_id, "its row has been pruned")
    return find_actions(view, rows_from, found[0])


def _make_error(decision_id: str, reason: str) -> InputError:
    return InputError(
        f"decision_id must be that of a decision in the log; got {short_repr(decision_id)}: {reason}",
        field="decision_id",
    )


def explain_choice(bandit: "Bandit", view: BanditView, choice: LoggedChoice) -> DecisionExplanation:
    """Judge the actions of a decision by the policy as it is now. Nothing is recorded."""
    offer, theta_hat = choice.offer, view.theta_hat
    if offer is None:
        return DecisionExplanation(
            decision=choice.report(view),
            context=None,
            actions=[],
            contributions=_split_columns(theta_hat, choice.action),
            note="The log does not have the other actions of this decision: it was made without log_offers, or they "
            "have been pruned.",
        )
    rows = read_rows(view, offer)
    at = None if view.in_rounds else bandit.policy.latest_stamp / 1e6
    estimates = rows @ theta_hat
    shown, propensities = range(len(rows)), None
    if len(rows) <= MOST_ACTIONS:
        ids = offer.ids or ()
        places = {id_: ids.index(id_) for id_ in bandit.policy.limited_ids if id_ in ids} or None
        propensities = bandit.policy.probabilities(
            rows, at=at, control=_find_control(bandit, offer), places=places, draws=DRAWS
        )
    else:
        best = np.argsort(-estimates, kind="stable")[: MOST_ACTIONS - 1].tolist()
        shown = sorted({choice.index, *best})  # type: ignore[assignment]
    scores = bandit.policy.scores(rows[list(shown)], at=at)
    actions = [
        ActionReport(
            index=index,
            action_id=offer.ids[index] if offer.ids else None,
            is_chosen=index == choice.index,
            estimate=float(estimates[index]),
            score=float(score),
            propensity=None if propensities is None else float(propensities[index]),
            features=offer.features[index] if offer.features else None,
        )
        for index, score in zip(shown, scores, strict=True)
    ]
    return DecisionExplanation(
        decision=choice.report(view),
        context=offer.context,
        actions=actions,
        contributions=_split_estimate(view, offer, choice.index, rows[choice.index]),
        note=_write_note(choice, estimates),
    )


def _find_control(bandit: "Bandit", offer: Offer) -> int | None:
    """Return the index of the control's action, where it plays one by its id."""
    wanted = bandit.descriptor.control_id
    return list(offer.ids).index(wanted) if wanted is not None and offer.ids and wanted in offer.ids else None


def _write_note(choice: LoggedChoice, estimates: Array) -> str:
    if choice.signed is not None and choice.signed < 0.0:
        return "The control made this choice, whatever the estimates were."
    place = int(np.count_nonzero(estimates > estimates[choice.index])) + 1
    if place == 1:
        return "Of the actions offered, the chosen one has the highest estimate, as of now."
    return (
        f"By its estimate as of now the chosen action is number {place} of {len(estimates)}: it was chosen to explore, "
        "or the policy has learnt since."
    )


def _split_estimate(view: BanditView, offer: Offer, index: int, row: Array) -> list[ContributionReport]:
    """Return each feature's part in the estimate: with it, less without it."""
    if offer.features is None:
        return _split_columns(view.theta_hat, row)
    context, action, whole = offer.context or {}, offer.features[index], float(row @ view.theta_hat)

    def estimate(context: Mapping[str, Any], action: Mapping[str, Any]) -> float:
        return float(encode_features(view.info, context, [action])[0] @ view.theta_hat)

    found: list[ContributionReport] = []
    sides: tuple[tuple[Literal["context", "action"], Mapping[str, Any]], ...] = (
        ("context", context),
        ("action", action),
    )
    for side, features in sides:
        for name, value in features.items():
            left = {other: kept for other, kept in features.items() if other != name}
            without = estimate(left, action) if side == "context" else estimate(context, left)
            found.append(ContributionReport(side=side, feature=name, value=_show(value), contribution=whole - without))
    return _take_largest(found)


def _split_columns(theta_hat: Array, row: Array) -> list[ContributionReport]:
    return _take_largest(
        [
            ContributionReport(
                side="column", feature=f"column {place}", value=f"{x:.3g}", contribution=float(x * weight)
            )
            for place, (x, weight) in enumerate(zip(row.tolist(), theta_hat.tolist(), strict=True))
            if x
        ]
    )


def _show(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _take_largest(found: list[ContributionReport]) -> list[ContributionReport]:
    return sorted(found, key=lambda part: -abs(part.contribution))[:MOST_CONTRIBUTIONS]
