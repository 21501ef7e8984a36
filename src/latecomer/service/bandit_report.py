"""The report of a bandit, for people and for programs: what it does, what it earns, and how sure that is."""

from datetime import datetime

from msgspec import Struct

from latecomer.service.messages import Health

__all__ = ["BanditReport", "ChoiceReport", "LiftReport", "PeriodReport", "RateReport"]


class RateReport(Struct, frozen=True, kw_only=True):
    """Conversion rates. `note` says why they differ.

    `naive` is conversions over decisions, which counts what is still on its way as lost. `matured` divides by the
    decisions weighed by the share of their conversions that has had time to arrive, Σ F̂(age); null where the policy
    has no delay curve. `closed` is that of decisions whose window has closed. `on_its_way` estimates how many
    conversions are still to come, and `share_on_its_way` is their share of all.
    """

    naive: float | None
    matured: float | None
    closed: float | None
    on_its_way: float | None
    share_on_its_way: float | None
    note: str


class PeriodReport(Struct, frozen=True, kw_only=True):
    """One period: `arrived` and `revoked` count reports of that time, the rest is of the decisions of that time."""

    start: datetime
    decisions: int
    controls: int
    arrived: int
    revoked: int
    conversions: int
    value: float
    matured_decisions: float | None
    choices: dict[str, int]


class ChoiceReport(Struct, frozen=True, kw_only=True):
    """Choices of one action id. `id` is null for all others, and for choices without an id."""

    id: str | None
    decisions: int
    conversions: int


class LiftReport(Struct, frozen=True, kw_only=True):
    """The policy's choices against the control's, on closed decisions: mean values, and their difference.

    The interval is for the means so far, at every look. `note` says what follows from it; `more_decisions` is a rough
    number of decisions after which the difference could be told from 0.
    """

    decisions: int
    mean: float | None
    control_decisions: int
    control_mean: float | None
    difference: float | None
    low: float
    high: float
    confidence: float
    more_decisions: int | None
    note: str


class BanditReport(Struct, frozen=True, kw_only=True):
    """A bandit's report as of `at`, the store's time.

    Counts begin with round `first_round`. `periods` are of `period_seconds` each, at most 96; `choices` has the
    commonest action ids. `mean_propensity` and `unsure_share`, the share of choices with a propensity below 0.5, are of
    choices that the policy made. `delay_curve` is as in the stats, in the unit of the window.
    """

    name: str
    policy: str
    window: int | str
    created_at: datetime
    at: datetime
    first_round: int
    rounds: int
    open_decisions: int
    decisions: int
    conversions: int
    value: float
    rates: RateReport
    lift: LiftReport | None
    period_seconds: int
    periods: list[PeriodReport]
    choices: list[ChoiceReport]
    mean_propensity: float | None
    unsure_share: float | None
    delay_curve: list[list[float]] | None
    conversion_verdicts: dict[str, int]
    revocation_verdicts: dict[str, int]
    health: Health | None = None
