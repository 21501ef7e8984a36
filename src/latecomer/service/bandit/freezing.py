"""Freezing a bandit: it decides, and learns nothing from its decisions, until it is unfrozen."""

from typing import TYPE_CHECKING

from latecomer.policies.base.decision import Verdict
from latecomer.service.bandit import events
from latecomer.service.bandit.verdict_list import VerdictList
from latecomer.validation import check_flag

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


def freeze_bandit(bandit: "Bandit", is_frozen: bool, *, now: int, shift: int = 0) -> tuple[VerdictList, bytes]:
    """Freeze a bandit, or unfreeze it; return `DUPLICATE` where it is so already, and the event for the log."""
    is_frozen = check_flag("frozen", is_frozen)
    if bandit.policy.is_frozen == is_frozen:
        return VerdictList([Verdict.DUPLICATE]), b""
    bandit.has_unlogged_change = True
    apply_freeze(bandit, is_frozen=is_frozen)
    bandit.stamp = now
    return VerdictList([Verdict.ACCEPTED]), events.pack_freeze(events.FREEZE, is_frozen, now)


def apply_freeze(bandit: "Bandit", *, is_frozen: bool) -> None:
    """Freeze the policy of a bandit, or unfreeze it."""
    for policy in bandit.policies:
        if is_frozen:
            policy.freeze()
        else:
            policy.unfreeze()
