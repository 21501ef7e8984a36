"""The part of a bandit that readers of its log need: taken under the store's lock, used without it."""

from typing import TYPE_CHECKING

from msgspec import Struct

from latecomer.core.state import Array
from latecomer.service.bandit.catalogue import Catalogue
from latecomer.service.bandit.decision_ids import DecisionIds
from latecomer.service.messages import BanditInfo

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


class BanditView(Struct, frozen=True, kw_only=True):
    """A bandit as of one moment. `oldest` is its oldest open round, `shift` the store's microseconds ahead."""

    info: BanditInfo
    number: int
    rounds: int
    oldest: int
    theta_hat: Array
    ids: DecisionIds
    shift: int
    kept_span: int
    """The window and the time for reports after it, in rounds or microseconds: no later one is accepted."""
    in_rounds: bool
    catalogue: Catalogue


def take_view(bandit: "Bandit", *, shift: int = 0) -> BanditView:
    """Take the view of a bandit."""
    return BanditView(
        info=bandit.info,
        number=bandit.number,
        rounds=bandit.rounds,
        oldest=int(bandit.policy.state.number("oldest")),
        theta_hat=bandit.policy.theta_hat,
        ids=bandit.ids,
        shift=shift,
        kept_span=bandit.window_span + bandit.policy.correctable,
        in_rounds=bandit.in_rounds,
        catalogue=bandit.catalogue.share(),
    )
