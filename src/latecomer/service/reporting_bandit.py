"""Reports of a bandit in this process besides its conversions: activations, corrections, stages, and freezes."""

from typing import TYPE_CHECKING

from latecomer.service.messages import Activation, Correction, DecisionAnswer, StageReport, Verdict, decision_id_of
from latecomer.service.store import Store
from latecomer.timestamps import Moment, parse_datetime

if TYPE_CHECKING:
    from latecomer.service.blocking_store import BlockingStore


class ReportingBandit:
    """Reports of one bandit of a store; when a method returns, its effect is on disk."""

    name: str
    _store: "Store | BlockingStore"

    def activate(self, decision_id: DecisionAnswer | str) -> Verdict:
        """Report that a deferred decision was shown: it counts from now on, and its window begins."""
        verdicts, ticket = self._store.activate(self.name, [Activation(decision_id_of(decision_id))])
        self._store.wait(ticket)
        return verdicts[0]

    def correct(self, decision_id: DecisionAnswer | str, value: float, *, occurred_at: Moment | None = None) -> Verdict:
        """Replace all that a decision is credited with by another value: in [0, 1], or with a reward an amount.

        It can be corrected for as long as it could be revoked. `DUPLICATE`: it has that value already, or its
        conversions were revoked; `UNKNOWN`: also, it has not converted.
        """
        occurred = parse_datetime(occurred_at, name="occurred_at")
        corrections = [Correction(decision_id_of(decision_id), value, occurred)]
        verdicts, ticket = self._store.correct(self.name, corrections)
        self._store.wait(ticket)
        return verdicts[0]

    def freeze(self) -> Verdict:
        """Decide without learning from now on, also after a restart; `DUPLICATE` where it is so already."""
        return self._set_frozen(True)

    def unfreeze(self) -> Verdict:
        """Learn again, from the decisions that are made from now on."""
        return self._set_frozen(False)

    def _set_frozen(self, is_frozen: bool) -> Verdict:
        verdicts, ticket = self._store.freeze(self.name, is_frozen)
        self._store.wait(ticket)
        return verdicts[0]

    def stage(self, decision_id: DecisionAnswer | str, stage: str, *, occurred_at: Moment | None = None) -> Verdict:
        """Report that a decision has reached a stage, such as "click": it is logged, and counted in the stats."""
        occurred = parse_datetime(occurred_at, name="occurred_at")
        reports = [StageReport(decision_id_of(decision_id), stage, occurred)]
        verdicts, ticket = self._store.report_stages(self.name, reports)
        self._store.wait(ticket)
        return verdicts[0]
