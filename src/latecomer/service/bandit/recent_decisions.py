"""The latest decisions with their fates, and how many of them were not greedy."""

from contextlib import suppress

import numpy as np
from msgspec import structs

from latecomer.core.state import Array
from latecomer.errors import DamagedFileError
from latecomer.service.bandit.bandit_view import BanditView
from latecomer.service.bandit.catalogue_history import fill_offer, place_choice
from latecomer.service.bandit.logged_choices import LoggedChoice, RowsFrom, read_choices
from latecomer.service.bandit.offers import Offer
from latecomer.service.bandit_report import BanditReport
from latecomer.service.features import encode_features

SHOWN = 15
"""Decisions in a report."""
LOOKED_AT = 50
"""Decisions whose offers are judged by the estimate."""
MOST_JUDGED = 10_000
"""Actions of a catalogue up to which its decisions are judged, those among the current version."""
_TIE = 1e-12
"""Relative difference below which two estimates are the same."""


def add_recent(report: BanditReport, view: BanditView, rows_from: RowsFrom) -> BanditReport:
    """Return the report with its latest decisions: those of the log's end, or of the end of its range."""
    last = report.first_round + report.decisions - 1
    choices: list[LoggedChoice] = []
    if report.decisions:
        with suppress(DamagedFileError):  # the counts do not depend on those rows; `latecomer log verify` names them
            choices = read_choices(view, rows_from, max(last - LOOKED_AT + 1, report.first_round), last)
    judged = [is_greedy for choice in choices if (is_greedy := _judge(view, choice)) is not None]
    return structs.replace(
        report,
        recent=[choice.report(view) for choice in reversed(choices[-SHOWN:])],
        exploration=structs.replace(
            report.exploration,
            non_greedy_share=1.0 - sum(judged) / len(judged) if judged else None,
            looked_at=len(judged),
        ),
    )


def _judge(view: BanditView, choice: LoggedChoice) -> bool | None:
    """Tell whether the chosen action has the highest estimate of its offer; None for the control, and without offer."""
    if choice.offer is not None and choice.offer.version is not None:
        is_current = choice.offer.version == view.catalogue.version and len(view.catalogue) <= MOST_JUDGED
        choice = place_choice(choice, fill_offer(choice.offer, view.catalogue) if is_current else None)
    if choice.offer is None or (choice.signed is not None and choice.signed < 0.0):
        return None
    estimates = read_rows(view, choice.offer) @ view.theta_hat
    best = float(estimates.max())
    return bool(estimates[choice.index] >= best - _TIE * max(abs(best), 1.0))


def read_rows(view: BanditView, offer: Offer) -> Array:
    """Return the rows of an offer."""
    if offer.features is None:
        return offer.read_rows(view.info.dim).astype(np.float64)
    return encode_features(view.info, offer.context or {}, offer.features)
