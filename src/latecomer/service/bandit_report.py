"""The report of a bandit, for people and for programs: what it does, what it earns, and how sure that is."""

from datetime import datetime

from msgspec import Struct

from latecomer.service.bandit_spec import ValueUnit
from latecomer.service.decision_report import DecisionReport
from latecomer.service.messages import Alarm, ArmRates, Health

__all__ = [
    "BanditReport",
    "ChoiceReport",
    "ExplorationReport",
    "LevelReport",
    "LiftReport",
    "PeriodReport",
    "RateReport",
    "SegmentReport",
    "ServiceReport",
    "WeightReport",
]


class RateReport(Struct, frozen=True, kw_only=True):
    """Conversion rates. `note` says why they differ.

    `naive` is conversions over decisions, which counts what is still on its way as lost. `matured` divides by the
    decisions weighed by the share of their conversions that has had time to arrive, Σ F̂(age); null where the policy
    has no delay curve, and while decisions are open and too few conversions have come to know the delays. `closed` is
    that of decisions whose window has closed. `on_its_way` estimates how many conversions are still to come, and
    `share_on_its_way` is their share of all.
    """

    naive: float | None
    matured: float | None
    closed: float | None
    on_its_way: float | None
    share_on_its_way: float | None
    note: str


class PeriodReport(Struct, frozen=True, kw_only=True):
    """One period: `arrived` and `revoked` count reports of that time, the rest is of the decisions of that time.

    `mean_propensity` is of the policy's own choices, where it is known.
    """

    start: datetime
    decisions: int
    controls: int
    arrived: int
    revoked: int
    conversions: int
    value: float
    matured_decisions: float | None
    choices: dict[str, int]
    mean_propensity: float | None = None


class ChoiceReport(Struct, frozen=True, kw_only=True):
    """Choices of one action id. `id` is null for all others, and for choices without an id."""

    id: str | None
    decisions: int
    conversions: int
    value: float = 0.0


class LevelReport(Struct, frozen=True, kw_only=True):
    """Decisions with one value of a context feature, or with a number in one range; null: of all further values."""

    level: str | None
    decisions: int
    conversions: int
    choices: dict[str, int]
    """Decisions by action id, of the report's commonest ids."""


class SegmentReport(Struct, frozen=True, kw_only=True):
    """The actions chosen for each value of one context feature, the commonest value first."""

    feature: str
    levels: list[LevelReport]


class ExplorationReport(Struct, frozen=True, kw_only=True):
    """The exploration of the policy's own choices; the control's are left out.

    `propensity_counts` counts choices by propensity, in ten equal parts of [0, 1]. `unsure_share` is the share of
    choices with a propensity below 0.5. `non_greedy_share` is that of choices whose action had not the highest estimate
    of its offer, θ̂·x as of now, among the latest `looked_at` decisions with a logged offer; null where there is none.
    """

    mean_propensity: float | None
    unsure_share: float | None
    propensity_counts: list[int]
    non_greedy_share: float | None = None
    looked_at: int = 0


class WeightReport(Struct, frozen=True, kw_only=True):
    """The weight of one feature in the estimate, and its 90 % interval, a heuristic as the covariance is."""

    feature: str
    weight: float
    low: float
    high: float


class ServiceReport(Struct, frozen=True, kw_only=True):
    """The server that answered: decisions since its start, how long they took, and how many replicas there are.

    The latencies are upper bounds, the edges of a histogram in seconds; null where nothing was measured.
    """

    decisions: int
    median_seconds: float | None
    p99_seconds: float | None
    replicas: int | None = None


class LiftReport(Struct, frozen=True, kw_only=True):
    """The policy's choices against the control's, on closed decisions: mean values, and their difference.

    `arms` names the two: where the bandit has a challenger, that is compared with the champion, its first policy. The
    interval is for the means so far, at every look. `note` says what follows from it; `more_decisions` is a rough
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
    arms: tuple[str, str] = ("policy", "control")


class BanditReport(Struct, frozen=True, kw_only=True):
    """A bandit's report as of `at`, the store's time.

    Counts begin with round `first_round`. Where `since` or `until` are given, it is about the decisions of that time
    alone. `arms` has the rates by arm, as in the stats. `periods` are of `period_seconds` each, at most 96; `choices`
    has the commonest action ids, `segments` the first context features, and `weights` the features of the largest
    weights. `delay_curve` and `delay_band` are as in the stats, in the unit of the window; so are `alarms`. Values are
    in [0, 1]; `unit` says what 1 is worth.
    """

    name: str
    policy: str
    dim: int
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
    arms: dict[str, ArmRates]
    period_seconds: int
    periods: list[PeriodReport]
    choices: list[ChoiceReport]
    exploration: ExplorationReport
    delay_curve: list[list[float]] | None
    conversion_verdicts: dict[str, int]
    revocation_verdicts: dict[str, int]
    delay_band: list[list[float]] | None = None
    segments: list[SegmentReport] = []
    weights: list[WeightReport] = []
    unit: ValueUnit | None = None
    since: datetime | None = None
    until: datetime | None = None
    recent: list[DecisionReport] = []
    """The latest decisions with their fates, the latest first."""
    health: Health | None = None
    """Of its store, without the names of damaged bandits, which the alarms count."""
    service: ServiceReport | None = None
    processor_seconds: float = 0.0
    """Processor time that making the report took."""
    alarms: list[Alarm] = []
