"""A rule of the state machine: decisions that leave actions out, or pin one."""

from typing import Any

from basket_rules import BasketRules
from guardrail_rules import OFFERS
from hypothesis import strategies as st
from hypothesis.stateful import rule

from latecomer.errors import InputError
from latecomer.service.decision_batch import Outcome, decide_batch
from latecomer.service.log_interface import Ticket
from latecomer.service.messages import DecisionAnswer


class SelectionRules(BasketRules):
    """Decide among some of the actions; the machine that has this rule follows new decisions."""

    @rule(data=st.data(), deferred=st.booleans(), in_batch=st.booleans())
    def decide_among(self, data: Any, deferred: bool, in_batch: bool) -> None:
        """Actions left out or pinned, by index or id; where nothing is left, or a pin is left out, nothing changes."""
        choices = st.integers(0, 2) | st.sampled_from("abc")
        excluded, pin = data.draw(st.lists(choices, max_size=4)), data.draw(st.none() | choices)
        request = {"actions": OFFERS, "ids": ["a", "b", "c"], "exclude": excluded, "pin": pin, "deferred": deferred}
        gone = {"abc".index(choice) if isinstance(choice, str) else choice for choice in excluded}
        left = {0, 1, 2} - gone
        if pin is not None:
            left &= {"abc".index(pin) if isinstance(pin, str) else pin}
        outcomes, tickets = decide_batch(self.store, "shop", [request]) if in_batch else self.try_to_decide(request)
        for ticket in tickets:
            self.store.wait(ticket)
        answer = outcomes[0]
        if not left:
            assert isinstance(answer, InputError)
            return
        assert isinstance(answer, DecisionAnswer)
        assert answer.index in left
        self.check_limits(answer.action_id, answer.propensity, left)
        if deferred:
            assert answer.round == -(self.model.defer(OFFERS[answer.index], self.now, answer.is_control) + 1)
            self.deferred.append(answer.decision_id)
        else:
            self.played(answer)

    def try_to_decide(self, request: dict[str, Any]) -> tuple[list[Outcome], list[Ticket]]:
        """Decide by itself, with the outcome as a batch would have it."""
        try:
            answer, ticket = self.store.decide("shop", **request)
        except InputError as error:
            return [error], []
        return [answer], [ticket]
