"""Conversions that name a subject: the decisions that they are credited to, and one verdict for each."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from latecomer.core.state import Integers
from latecomer.errors import InputError
from latecomer.policies.base.converting_policy import join_verdicts
from latecomer.policies.base.subjects import digest_subject
from latecomer.service.bandit.reports import digest_report
from latecomer.service.bandit.verdict_list import Attributed, ReportWarning, VerdictList
from latecomer.service.messages import Conversion

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


class AttributedConversions(Struct, frozen=True):
    """Conversions by round: the conversion's place for each, and the places of those that named a subject."""

    rounds: Integers
    places: Integers
    by_subject: list[int]
    count: int

    @property
    def is_joined(self) -> npt.NDArray[np.bool_]:
        """Tell which rounds are credited by the same conversion as the one before."""
        found: npt.NDArray[np.bool_] = np.diff(self.places, prepend=-1) == 0
        return found

    def join(self, verdicts: VerdictList, id_of: Callable[[int], str]) -> VerdictList:
        """Return one verdict for each conversion, with the decisions of those that named a subject."""
        parts: list[list[int]] = [[] for _ in range(self.count)]
        for flat, place in enumerate(self.places.tolist()):
            parts[place].append(flat)
        joined = VerdictList(join_verdicts([verdicts[flat] for flat in part]) for part in parts)
        for place in self.by_subject:
            rounds = self.rounds[parts[place]].tolist()
            joined.attributed.append(Attributed(place, [id_of(round_) for round_ in rounds if round_]))
        joined.warnings = [
            ReportWarning(int(self.places[found.index]), found.code, found.message) for found in verdicts.warnings
        ]
        return joined


def attribute_conversions(
    bandit: "Bandit", conversions: Sequence[Conversion], arrivals: Integers, now: int
) -> AttributedConversions | None:
    """Find the rounds of conversions; None where all name their decision.

    `InputError` where one names neither its decision nor its subject, or both.
    """
    for place, conversion in enumerate(conversions):
        _check_target(conversion, place)
    if not any(conversion.subject is not None for conversion in conversions):
        return None
    rounds: list[int] = []
    places: list[int] = []
    by_subject: list[int] = []
    for place, (conversion, arrival) in enumerate(zip(conversions, arrivals.tolist(), strict=True)):
        if conversion.subject is None:
            found = [bandit.find_round(conversion.decision_id or "")]
        else:
            known = bandit.purchases.find_rounds(digest_report(conversion, place), arrival, now)
            found = known or bandit.policy.attribute_digest(digest_subject(conversion.subject), arrival) or [0]
            by_subject.append(place)
        rounds += found
        places += [place] * len(found)
    return AttributedConversions(np.array(rounds, np.int64), np.array(places, np.int64), by_subject, len(conversions))


def _check_target(conversion: Conversion, place: int) -> None:
    field = f"[{place}].subject"
    if (conversion.decision_id is None) == (conversion.subject is None):
        given = "neither" if conversion.subject is None else "both"
        raise InputError(
            f"conversion {place} must name its decision_id or its subject; got {given}",
            field=field if given == "both" else f"[{place}].decision_id",
        )
    if conversion.subject is not None:
        try:
            digest_subject(conversion.subject)
        except InputError as error:
            error.field = field
            raise
