"""Rules of the state machine: conversions with ids of their own, returns of one of them, and stages."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from catalogue_rules import CatalogueRules
from hypothesis import strategies as st
from hypothesis.stateful import rule

from latecomer.service.messages import Conversion, Correction, Revocation, StageReport, Verdict


class BasketRules(CatalogueRules):
    """Buy, give back and reach stages; the machine that has these rules picks decisions and moments."""

    pick: Callable[[Any], tuple[str, int]]
    known: Callable[[str, int], int]
    moment: Callable[[Any], tuple[datetime | None, int]]

    @rule(data=st.data(), value=st.sampled_from([0.25, 1.0]), names=st.lists(st.sampled_from("pqr"), min_size=1))
    def buy(self, data: Any, value: float, names: list[str]) -> None:
        """Conversions of one decision with ids of their own, some twice."""
        id_, round_ = self.pick(data)
        round_ = self.known(id_, round_)
        occurred, moment = self.moment(data)
        reports = [Conversion(id_, value, occurred, conversion_id=name) for name in names]
        verdicts, ticket = self.store.convert("shop", reports)
        self.store.wait(ticket)
        assert verdicts == [self.model.convert(round_, value, moment, self.now, name) for name in names]

    @rule(data=st.data(), name=st.sampled_from("pqr"))
    def give_back(self, data: Any, name: str) -> None:
        """One conversion is taken back: of a decision, or wherever it was credited."""
        occurred, moment = self.moment(data)
        if data.draw(st.booleans()):
            id_, round_ = self.pick(data)
            rounds, report = [self.known(id_, round_)], Revocation(id_, occurred, name)
        else:
            rounds, report = self.model.find_id(name, moment, self.now), Revocation(None, occurred, name)
        verdicts, ticket = self.store.revoke("shop", [report])
        self.store.wait(ticket)
        expected = [self.model.revoke(round_, moment, self.now, name) for round_ in rounds or [0]]
        assert verdicts == [Verdict.ACCEPTED if Verdict.ACCEPTED in expected else expected[-1]]

    @rule(data=st.data(), value=st.sampled_from([0.25, 0.5, 1.0]))
    def correct(self, data: Any, value: float) -> None:
        """All that a decision is credited with is replaced by one value."""
        id_, round_ = self.pick(data)
        round_ = self.known(id_, round_)
        occurred, moment = self.moment(data)
        verdicts, ticket = self.store.correct("shop", [Correction(id_, value, occurred)])
        self.store.wait(ticket)
        assert verdicts == [self.model.correct(round_, value, moment, self.now)]

    @rule(data=st.data(), stage=st.sampled_from(["click", "cart"]))
    def reach(self, data: Any, stage: str) -> None:
        id_, round_ = self.pick(data)
        round_ = self.known(id_, round_)  # before the commit, after which the log may prune it
        verdicts, ticket = self.store.report_stages("shop", [StageReport(id_, stage)])
        self.store.wait(ticket)
        assert verdicts == [self.model.reach(round_, stage, self.now)]
