"""The reports that a store takes: conversions, revocations, activations and stages, each a list with a verdict each."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.freezing import freeze_bandit
from latecomer.service.bandit.purchases import correct_credits
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.service.messages import Activation, Conversion, Correction, Revocation, StageReport

Given = TypeVar("Given")
"""The answer of a call: verdicts with a ticket to wait for before they leave, or a future that has them."""
Apply = Callable[..., tuple[VerdictList, bytes]]
"""A method of a bandit that takes reports."""


class ReportCalls(Generic[Given]):
    """The calls of a store that take reports. A store has `report`, which runs them."""

    def report(self, name: str, apply: Apply, reports: Any) -> Given:
        """Give reports to a bandit."""
        raise NotImplementedError

    def convert(self, name: str, conversions: Sequence[Conversion]) -> Given:
        """Report conversions."""
        return self.report(name, Bandit.convert, conversions)

    def revoke(self, name: str, revocations: Sequence[Revocation]) -> Given:
        """Take conversions back."""
        return self.report(name, Bandit.revoke, revocations)

    def correct(self, name: str, corrections: Sequence[Correction]) -> Given:
        """Replace what decisions are credited with."""
        return self.report(name, correct_credits, corrections)

    def activate(self, name: str, activations: Sequence[Activation]) -> Given:
        """Report deferred decisions that were shown."""
        return self.report(name, Bandit.activate, activations)

    def freeze(self, name: str, is_frozen: bool) -> Given:
        """Have a bandit decide without learning, or learn again; `DUPLICATE` where it is so already."""
        return self.report(name, freeze_bandit, is_frozen)

    def report_stages(self, name: str, reports: Sequence[StageReport]) -> Given:
        """Report stages that decisions have reached."""
        return self.report(name, Bandit.report_stages, reports)
