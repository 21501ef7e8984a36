"""A rule of the state machine: visits that click, of which some buy, so that a click foretells a purchase."""

from guardrail_rules import OFFERS
from hypothesis import strategies as st
from hypothesis.stateful import rule
from selection_rules import SelectionRules

from latecomer.service.messages import Conversion, StageReport


class StageRules(SelectionRules):
    """Visits; the machine that has this rule follows new decisions."""

    @rule(visits=st.lists(st.sampled_from(["pass", "click", "buy"]), min_size=3, max_size=6))
    def visit(self, visits: list[str]) -> None:
        """A decision each, which may reach a stage and convert at once."""
        for visit in visits:
            answer, ticket = self.store.decide("shop", OFFERS, ["a", "b", "c"])
            self.store.wait(ticket)
            self.played(answer)
            if visit != "pass":
                verdicts, ticket = self.store.report_stages("shop", [StageReport(answer.decision_id, "click")])
                self.store.wait(ticket)
                assert verdicts == [self.model.reach(answer.round, "click", self.now)]
            if visit == "buy":
                verdicts, ticket = self.store.convert("shop", [Conversion(answer.decision_id, 1.0)])
                self.store.wait(ticket)
                assert verdicts == [self.model.convert(answer.round, 1.0, self.now, self.now)]
