"""Feature weights of a report: θ̂ by the names of the bandit's encoder, or by column where there are no names."""

from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from latecomer.encoding.known_terms import KnownTerm, list_terms, weigh_terms
from latecomer.encoding.spec import EncoderSpec
from latecomer.service.bandit_report import WeightReport

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit

LARGEST = 20
"""Features in a report: those of the largest weights."""
CONFIDENCE = 0.9
MOST_TERMS = 2_000
"""Terms that are weighed, features before products: a report is made again every second."""
_MOST_KEPT = 1024
_kept: dict[int, tuple[EncoderSpec, list[KnownTerm]]] = {}


def report_weights(bandit: "Bandit") -> list[WeightReport]:
    """Return the features of the largest weights; none before the first decision, or where names are only hashed."""
    encoder = bandit.info.encoder
    if not bandit.rounds or (encoder is not None and encoder.is_open):
        return []
    if encoder is not None:
        terms = _find_terms(encoder)
        names = [term.name for term in terms]
        weights, spread = weigh_terms(encoder, terms, bandit.policy, confidence=CONFIDENCE)
    else:
        quantile = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2.0)
        names = [f"column {number}" for number in range(bandit.dim)]
        weights = bandit.policy.theta_hat
        spread = quantile * np.sqrt(np.maximum(np.diagonal(bandit.policy.covariance), 0.0))
    largest = np.argsort(-np.abs(weights), kind="stable")[:LARGEST].tolist()
    return [
        WeightReport(
            feature=names[place],
            weight=float(weights[place]),
            low=float(weights[place] - spread[place]),
            high=float(weights[place] + spread[place]),
        )
        for place in largest
    ]


def _find_terms(encoder: EncoderSpec) -> list[KnownTerm]:
    """Return the terms of an encoder, kept for as long as it is the same object: naming them takes long."""
    known = _kept.get(id(encoder))
    if known is not None and known[0] is encoder:
        return known[1]
    if len(_kept) >= _MOST_KEPT:
        _kept.clear()
    terms = list_terms(encoder)[:MOST_TERMS]
    _kept[id(encoder)] = encoder, terms
    return terms
