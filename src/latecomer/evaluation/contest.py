"""Champion and challenger: two policies that share the traffic, and of which each learns from all of it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer.core.action_summary import Shorts
from latecomer.core.state import UNSTAMPED, Array
from latecomer.errors import InputError
from latecomer.evaluation.arm_comparison import ArmComparison, compare_arms
from latecomer.policies.base import bulk
from latecomer.policies.base.action_validation import check_actions
from latecomer.policies.base.clock import Clock, system_clock
from latecomer.policies.base.decision import Decision, Verdict, round_of
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.ranking_policy import check_examination
from latecomer.policies.base.rng import Draw
from latecomer.timestamps import Moment
from latecomer.validation import check_share

CHAMPION, CHALLENGER = 0, 1


class ContestedDecision(NamedTuple):
    """A decision that both policies have recorded, and the summary of its actions."""

    decision: Decision
    summary: Shorts


def decide_contested(
    policies: tuple[LinearPolicy, LinearPolicy],
    rows: Array,
    *,
    arm: int,
    share: float,
    at: Moment | None,
    deferred: bool = False,
    subject: str | None = None,
    places: Sequence[Mapping[str, int] | None] = (None, None),
) -> ContestedDecision:
    """Have the policy of an arm decide, and the other record the decision; `is_control` is True of the champion's.

    The propensity is that before the arm was drawn, (1 − f)·p + f·p′ with f the `share` of the challenger, where both
    policies know theirs; `places` has that argument of `decide` for each. Of a deferred decision the other only takes
    the random numbers that a round takes.
    """
    leader, follower = policies[arm], policies[1 - arm]
    chances = follower.probabilities(rows, at=at, places=places[1 - arm]) if knows_probabilities(follower) else None
    decision = leader.decide(rows, at=at, deferred=deferred, subject=subject, places=places[arm])
    summary = bulk.latest_summary(leader, rows)
    if deferred:
        follower.rng.draws(1, follower.dim)
    else:
        bulk.record(follower, decision.action[None], summary[None], np.array([_read_stamp(leader)]))
    propensity = None
    if chances is not None and decision.propensity is not None:
        propensity = _blend(decision.propensity, float(chances[decision.index]), arm, share)
    made = Decision(
        decision.round, decision.index, decision.action, decision.score, propensity, is_control=arm == CHAMPION
    )
    return ContestedDecision(made, summary)


def rank_contested(
    policies: tuple[LinearPolicy, LinearPolicy],
    rows: Array,
    k: int,
    *,
    arm: int,
    share: float,
    at: Moment | None,
    subject: str | None = None,
    examination: Sequence[float] | None = None,
) -> Decision:
    """Have the policy of an arm rank k actions, and the other record their rounds; both must know their propensities.

    The propensities, of the first action and of each inclusion, are those before the arm was drawn.
    """
    leader, follower = policies[arm], policies[1 - arm]
    follower.check_ranking(rows, k)  # the leader must not have ranked what the other cannot
    decision = leader.decide(rows, at=at, subject=subject, k=k, examination=examination)
    indices, own = decision.indices or (decision.index,), decision.propensities or ()
    first, included = follower.assess_ranking(rows, indices, at=at)
    actions = rows[list(indices)] * check_examination(examination, k)[:, None]
    bulk.record(follower, actions, np.tile(bulk.summarise(rows), (k, 1)), np.full(k, _read_stamp(leader)))
    return Decision(
        decision.round,
        decision.index,
        decision.action,
        decision.score,
        None if decision.propensity is None else _blend(decision.propensity, first, arm, share),
        arm == CHAMPION,
        indices,
        tuple(
            None if one is None else _blend(one, other, arm, share) for one, other in zip(own, included, strict=True)
        ),
    )


def _read_stamp(policy: LinearPolicy) -> int:
    """Return the stamp of a policy's latest decision, as `bulk.record` takes it."""
    return UNSTAMPED if isinstance(policy.window, int) else int(policy.state.number("now"))


def _blend(own: float, other: float, arm: int, share: float) -> float:
    """Return the probability before the arm is drawn, given that by the arm's policy and that by the other."""
    weights = (1.0 - share, share)
    return weights[arm] * own + weights[1 - arm] * other


class Contest:
    """A champion that decides, and a challenger that decides a share of the time.

    Whoever decides, both record the round and take its conversion, so that neither has the advantage of more data, and
    the challenger is warm when it takes over. The share of each arm is drawn before anything else, so that the arms
    can be compared as in any experiment (`compare`).

    Parameters
    ----------
    champion, challenger
        Two policies of one dimension, window and grace that have as many rounds: none, or those of one log.
    share
        The share of the decisions that the challenger makes, below 1.
    seed
        Of the draw of the arm: an int, or a NumPy generator; None takes fresh entropy.
    clock
        Where the window is a time: the function that tells the time when `at` is not given.

    Examples
    --------
    >>> import numpy as np, latecomer as lc
    >>> contest = lc.Contest(lc.LinUCB(2, 100), lc.recommended(2, 100, seed=0), share=0.5, seed=1)
    >>> for _ in range(20):
    ...     decision = contest.decide(np.eye(2))
    ...     _ = contest.convert(decision, float(decision.index))
    >>> contest.champion.rounds, contest.challenger.rounds, contest.compare().decisions
    (20, 20, 0)
    """

    def __init__(
        self,
        champion: LinearPolicy,
        challenger: LinearPolicy,
        *,
        share: float = 0.1,
        seed: int | np.random.Generator | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.champion, self.challenger = champion, challenger
        self.share = check_share("share", share)
        if self.share == 1.0:
            raise InputError(f"share must be below 1, the challenger's part; got {share!r}", field="share")
        for name in ("dim", "window", "grace", "rounds"):
            one, other = (getattr(policy, name) for policy in (champion, challenger))
            if one != other:
                raise InputError(
                    f"challenger must have the champion's {name}, {one!r}; got {other!r}: make both alike",
                    field="challenger",
                )
        self._rng, self._clock = np.random.default_rng(seed), clock or system_clock
        self._first = champion.rounds + 1
        self._arms: list[int] = []
        self._values: list[float] = []
        self._closed, self._sums = [0, 0], [0.0, 0.0]

    @property
    def rounds(self) -> int:
        """The number of decisions of both."""
        return self.champion.rounds

    def decide(self, actions: npt.ArrayLike, *, at: Moment | None = None) -> Decision:
        """Choose an action, by the arm that the draw gives; both record it. `is_control` is True of the champion's.

        The propensity is that before the arm was drawn, (1 − f)·p + f·p′, where both policies know theirs.
        """
        rows, at = check_actions(actions, self.champion.dim), self._moment(at)
        arm = CHALLENGER if self._rng.random() < self.share else CHAMPION
        decision, _ = decide_contested((self.champion, self.challenger), rows, arm=arm, share=self.share, at=at)
        self._close_rounds()
        self._arms.append(arm)
        self._values.append(0.0)
        return decision

    def _moment(self, at: Moment | None) -> Moment | None:
        """Return the time that both policies are told."""
        return self._clock() if at is None and not isinstance(self.champion.window, int) else at

    def convert(self, decision: Decision | float, value: float = 1.0, *, at: Moment | None = None) -> Verdict:
        """Credit a conversion in both policies, and to the arm that decided; see `LinearPolicy.convert`."""
        at = self._moment(at)
        verdict = self.champion.convert(decision, value, at=at)
        self.challenger.convert(decision, value, at=at)
        if verdict is Verdict.ACCEPTED:
            self._values[round_of(decision) - self._first] = float(value)
        return verdict

    def revoke(self, decision: Decision | float, *, at: Moment | None = None) -> Verdict:
        """Take a conversion back in both policies, and from the arm that decided; see `LinearPolicy.revoke`."""
        at = self._moment(at)
        verdict = self.champion.revoke(decision, at=at)
        self.challenger.revoke(decision, at=at)
        if verdict is Verdict.ACCEPTED:
            self._values[round_of(decision) - self._first] = 0.0
        return verdict

    def reach(self, decision: Decision | float, stage: str, *, at: Moment | None = None) -> Verdict:
        """Report a stage to the policies that have it; see `LinearPolicy.reach`."""
        at, told = self._moment(at), [each for each in (self.champion, self.challenger) if stage in each.stages]
        verdicts = [each.reach(decision, stage, at=at) for each in told or [self.champion]]
        return verdicts[0]

    def freeze(self) -> None:
        """Have both decide without learning."""
        self.champion.freeze()
        self.challenger.freeze()

    def unfreeze(self) -> None:
        """Have both learn again."""
        self.champion.unfreeze()
        self.challenger.unfreeze()

    def _close_rounds(self) -> None:
        """Count the rounds whose window and grace have passed: their values are final."""
        closed = int(self.champion.state.number("kept")) - self._first
        for arm, value in zip(self._arms[:closed], self._values[:closed], strict=True):
            self._closed[arm] += 1
            self._sums[arm] += value
        if closed > 0:
            del self._arms[:closed], self._values[:closed]
            self._first += closed

    def compare(self) -> ArmComparison:
        """Compare the challenger with the champion, over the decisions whose windows have closed."""
        (champion, challenger), (earned, challenged) = self._closed, self._sums
        return compare_arms((challenger, challenged), (champion, earned), name="challenger", against="champion")

    def promote(self) -> LinearPolicy:
        """Return the challenger, to decide alone from now on: it has learnt from all rounds."""
        return self.challenger


def knows_probabilities(policy: LinearPolicy) -> bool:
    """Tell whether the probabilities of a policy's next choice are exact."""
    algorithm = policy.algorithm
    return algorithm.is_randomised or algorithm.draw is Draw.NOTHING or algorithm.scores_are_probabilities
