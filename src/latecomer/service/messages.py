"""Messages of the store and of HTTP: plain records that need nothing but msgspec."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from latecomer.encoding.spec import EncoderSpec, Scale
from latecomer.errors import InputError
from latecomer.evaluation.arm_comparison import ArmComparison
from latecomer.policies.base.decision import Verdict
from latecomer.service.bandit_spec import ChallengerSpec, RewardSpec, ValueUnit
from latecomer.service.report_messages import Activation, Conversion, Correction, Revocation, StageCounts, StageReport
from latecomer.validation import check_text, list_items, short_repr, to_plain_text

__all__ = [
    "Activation",
    "Alarm",
    "BanditInfo",
    "BanditStats",
    "CatalogueInfo",
    "Conversion",
    "Correction",
    "DecisionAnswer",
    "Health",
    "ImportAnswer",
    "ImportBatch",
    "Revocation",
    "StageCounts",
    "StageReport",
    "Verdict",
]

MAX_ID_LENGTH = 200
"""Characters of a request id or an action id."""


class BanditInfo(Struct, frozen=True, kw_only=True):
    """The description of a bandit: its specification, and when it was created."""

    name: str
    dim: int
    window: int | str
    policy: str
    parameters: dict[str, Any]
    created_at: datetime
    quarantined: bool = False
    """True where its rows are damaged, so that it is not served."""
    features: dict[str, Scale] = {}
    encoder: EncoderSpec | None = None
    """The encoder of decisions with features, where it was created with one; `Encoder.from_dict` takes it."""
    log_offers: bool = True
    unit: ValueUnit | None = None
    grace: str | None = None
    """The time after its window in which conversions that occurred inside it are taken; null where that is rounds."""
    activation_timeout: int | str | None = None
    """The longest wait of a deferred decision for its activation; null is the window."""
    attribution: str = "last"
    """The decisions that a conversion of a subject is credited to: "last", "first" or "all"."""
    reward: Literal["binary"] | RewardSpec = "binary"
    returns: int | str | None = None
    """The time after its window in which a credited value can be taken back; null is as long as the grace."""
    challenger: ChallengerSpec | None = None
    """The second policy, which makes a share of the decisions."""


class DecisionAnswer(Struct, frozen=True):
    """The answer to a request for a decision: the index of the chosen action, and its id where ids were given.

    Conversions are reported by `decision_id`. `expires_at` is when the window closes, where the window is a time.
    `propensity` is the probability by which the action was chosen, null where the policy does not know it;
    `is_control` tells whether the control chose it. A deferred decision's `round` is negative, and `expires_at` is
    until when it can be activated.
    """

    decision_id: str
    index: int
    action_id: str | None
    round: int
    score: float
    expires_at: datetime | None
    propensity: float | None = None
    is_control: bool = False


class RankedAnswer(DecisionAnswer, frozen=True):
    """An answer with the probabilities of all actions of the request: 0 for those that it has left out."""

    probabilities: list[float] = []


class RankedAction(Struct, frozen=True):
    """One position of a ranking: a decision of its own, which converts by its own `decision_id`.

    `propensity` is the probability that the action is among the k.
    """

    position: int
    index: int
    action_id: str | None
    decision_id: str
    round: int
    propensity: float | None


class RankingAnswer(DecisionAnswer, frozen=True):
    """The answer to a request for k actions: that of the first, and all of them in `ranking`."""

    ranking: list[RankedAction] = []


def decision_id_of(decision: DecisionAnswer | str) -> str:
    """Return the id of a decision, given as a text or as its answer."""
    found = decision.decision_id if isinstance(decision, DecisionAnswer) else decision
    if not isinstance(found, str):
        raise InputError(
            f"decision_id must be a text, as it was given, or the answer that has it; got {short_repr(found)}",
            field="decision_id",
        )
    return to_plain_text(found)


def list_conversions(conversions: Iterable[Conversion]) -> list[Conversion]:
    """Return conversions as a list; `InputError` where they are none."""
    return list_items("conversions", conversions, Conversion, "latecomer.Conversion records")


def check_request_id(request_id: object) -> str:
    """Return a request id that is a text of the right length."""
    return check_text("request_id", request_id, most=MAX_ID_LENGTH)


class EventActivation(Struct, frozen=True):
    """A report that the deferred decision of a request id was shown."""

    request_id: str


MAX_IMPORTED = 10_000
"""Decisions in one batch of an import, and conversions."""
_MOST = 2**53
Ordinal = Annotated[int, Meta(ge=1, le=_MOST)]
Seconds = Annotated[float, Meta(ge=0.0, le=1e11)]
"""A time since 1970."""


class ImportedConversions(Struct, frozen=True, forbid_unknown_fields=True):
    """Conversions of imported decisions, column by column: `decisions` has the ordinals of their decisions, from 1."""

    decisions: Annotated[list[Ordinal], Meta(max_length=MAX_IMPORTED)] = []
    converted_at: Annotated[list[Seconds], Meta(max_length=MAX_IMPORTED)] = []
    values: Annotated[list[Annotated[float, Meta(ge=0.0, le=1.0)]], Meta(max_length=MAX_IMPORTED)] = []


class ImportBatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Some of the decisions that others made, in the order of time, column by column, for a bandit to learn from.

    `after` is the number of decisions in the batches before, and `first_round` the round of the import's first one,
    which the answer to its first batch has. Times are seconds since 1970. `summaries` are of the sets that the actions
    were chosen from; without them, each action is its own set. The same `import_id` and `after` count once.
    """

    import_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]
    decided_at: Annotated[list[Seconds], Meta(min_length=1, max_length=MAX_IMPORTED)]
    actions: list[list[float]]
    after: Annotated[int, Meta(ge=0, le=_MOST)] = 0
    first_round: Ordinal | None = None
    summaries: list[list[Annotated[int, Meta(ge=-32767, le=32767)]]] | None = None
    conversions: ImportedConversions = ImportedConversions()


class ImportAnswer(Struct, frozen=True, kw_only=True):
    """The answer to a batch of an import: its first decision's round, and how many decisions have been imported.

    `verdicts` counts those on the batch's conversions; it is null where the batch had been imported before.
    """

    first_round: int
    imported: int
    verdicts: dict[str, int] | None


class BanditCounts(Struct, frozen=True, kw_only=True):
    """Counts of a bandit's rounds and reports.

    `conversions` and `revocations` count verdicts; `before_decision` the accepted conversions whose `occurred_at` lies
    before their decision, where the window is a time. `delay_edges` and `delay_counts` are a histogram of the delays of
    the other accepted ones, in seconds or rounds: a count for each edge (delays up to it, and above the one before),
    and one beyond; `delay_sum` is their sum. `drift` is max |V·V⁻¹ − I| at its last check. `deferred` counts deferred
    decisions: `waiting` for their activation, `activated`, and `expired` without one. `frozen` tells whether the bandit
    decides without learning. `capped` counts accepted conversions after which their decision was worth more than the
    scale of the reward, and counted as the scale.
    """

    name: str
    rounds: int
    pending: int
    conversions: dict[str, int]
    revocations: dict[str, int]
    before_decision: int
    delay_edges: list[float]
    delay_counts: list[int]
    delay_sum: float
    drift: float
    refactorisations: int
    deferred: dict[str, int] = {}
    frozen: bool = False
    capped: int = 0


class Alarm(Struct, frozen=True, kw_only=True):
    """A finding that somebody should act on; docs/reference/alarms.md says how each is computed, and how often it errs.

    `bandit` is null where the alarm is of the whole store, `since` where its begin is not known. `sentence` says what
    is wrong, in numbers, and `remedy` what to do.
    """

    id: str
    severity: Literal["warning", "critical"]
    bandit: str | None
    since: datetime | None
    sentence: str
    remedy: str


class ArmRates(Struct, frozen=True, kw_only=True):
    """Conversion rates of the decisions of one arm: those of the policy or its control, the champion or the challenger.

    `naive`, `matured` and `closed` are as in the report's rates: conversions over decisions, over `matured_decisions`,
    Σ F̂(age), and among closed decisions alone. Null where there is none, or where the delays are not known.
    """

    decisions: int
    conversions: int
    matured_decisions: float | None
    naive: float | None
    matured: float | None
    closed: float | None


class BanditStats(BanditCounts, frozen=True, kw_only=True):
    """The counts of a bandit (see `BanditCounts`), and what its policy has learned.

    `width` is the policy's width as of the next round, `pending_width` the part due to open rounds. `delay_curve` is
    the policy's own estimate, where it makes one: pairs of an age and the share of in-window conversions that have
    arrived by then; `delay_band` has its 90 % confidence band, pairs of low and high at the same ages, from the counts
    alone, where the curve has a prior and may be outside. The share of all conversions that the window keeps cannot be
    estimated from inside it. `alarms` has those of the bandit, then those of its store. `value` is the sum of what
    decisions are credited with, in the bandit's `unit`, or in values of 1 where it has none. `stages` has the decisions
    that reached each stage, and how many of these converted. `contest` compares the challenger, where there is one,
    with the champion, over decisions whose window has closed; `mean` and `decisions` are the challenger's. `arms` has
    the rates of "challenger" and "champion", or of "policy" and "control" where a control has decided.
    """

    theta_hat: list[float]
    width: float
    pending_width: float
    delay_curve: list[list[float]] | None
    delay_band: list[list[float]] | None = None
    alarms: list[Alarm] = []
    value: float = 0.0
    unit: str | None = None
    stages: dict[str, StageCounts] = {}
    contest: ArmComparison | None = None
    arms: dict[str, ArmRates] = {}


class Health(Struct, frozen=True, kw_only=True):
    """The state of a store, and its totals since it was opened.

    `failure` says why changes are refused, where they are. `clock_offset` is the store's time minus the machine's, in
    seconds. `quarantined` has the damage of quarantined bandits, by name. `free_bytes` is the room left on the disk of
    the store; null where the store is on another machine.
    """

    failure: str | None
    snapshot_failure: str | None
    commits: int
    events: int
    bytes: int
    commit_seconds: float
    clock_offset: float
    quarantined: dict[str, str] = {}
    free_bytes: int | None = None


class CatalogueInfo(Struct, frozen=True, kw_only=True):
    """A catalogue: its version, which every change raises by 1, its actions, and what the request has changed."""

    version: int
    size: int
    added: int = 0
    changed: int = 0
    withdrawn: int = 0
