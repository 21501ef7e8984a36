"""Champion and challenger: two policies that share the traffic, and of which each learns from all of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from latecomer.errors import InputError
from latecomer.evaluation.arm_comparison import ArmComparison, compare_arms
from latecomer.evaluation.contest_arms import ContestArms
from latecomer.evaluation.contested_decisions import (
    CHALLENGER,
    CHAMPION,
    decide_contested,
    rank_contested,
    record_activated,
    share_tables,
)
from latecomer.policies.base.action_validation import check_actions
from latecomer.policies.base.clock import Clock, system_clock
from latecomer.policies.base.decision import Decision, Verdict
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.reward import NOT_GIVEN, NotGiven
from latecomer.timestamps import Moment
from latecomer.validation import check_share


class Contest:
    """A champion that decides, and a challenger that decides a share of the time.

    Whoever decides, both record the round and take its conversion, so that neither has the advantage of more data, and
    the challenger is warm when it takes over. The share of each arm is drawn before anything else, so that the arms
    can be compared as in any experiment (`compare`).

    Parameters
    ----------
    champion, challenger
        Two policies that take the same reports: of one dimension, window and grace, and of one `reward`, `returns`,
        `attribution` and `activation_timeout`. They have as many rounds: none, or those of one log. Neither has a
        `control`, for the champion is the challenger's. Stages and limits may be those of one alone. While they are in
        the contest they share the champion's tables of subjects and of deferred decisions.
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
        _check_arms(champion, challenger)
        share_tables(champion, challenger)
        self._rng, self._clock = np.random.default_rng(seed), clock or system_clock
        self._arms = ContestArms(champion)

    @property
    def rounds(self) -> int:
        """The number of decisions of both."""
        return self.champion.rounds

    def decide(
        self,
        actions: npt.ArrayLike,
        *,
        at: Moment | None = None,
        places: Mapping[str, int] | None = None,
        deferred: bool = False,
        subject: str | None = None,
        k: int = 1,
        examination: Sequence[float] | None = None,
    ) -> Decision:
        """Choose an action, by the arm that the draw gives; both record it. `is_control` is True of the champion's.

        The propensity is that before the arm was drawn, (1 − f)·p + f·p′, where both policies know theirs. Arguments
        are those of `LinearPolicy.decide`, but for an oracle or a control; `places` is for the policies with limits.
        """
        if deferred and (k != 1 or examination is not None):
            raise InputError("deferred must be left out where k or examination is given", field="deferred")
        rows, at, before = check_actions(actions, self.champion.dim), self._moment(at), self._rng.bit_generator.state
        arm = CHALLENGER if self._rng.random() < self.share else CHAMPION
        both = (self.champion, self.challenger)
        try:
            if k != 1 or examination is not None:
                decision = rank_contested(
                    both, rows, k, arm=arm, share=self.share, at=at, subject=subject, examination=examination
                )
            else:
                own = [places if policy.limited_ids else None for policy in both]
                decision, _ = decide_contested(
                    both, rows, arm=arm, share=self.share, at=at, deferred=deferred, subject=subject, places=own
                )
        except InputError:
            self._rng.bit_generator.state = before
            raise
        if deferred:
            self._arms.note_deferred(-decision.round, arm)
        else:
            self._arms.note_rounds(arm)
        return decision

    def _moment(self, at: Moment | None) -> Moment | None:
        """Return the time that both policies are told."""
        return self._clock() if at is None and not isinstance(self.champion.window, int) else at

    def activate(self, decision: Decision | float, *, at: Moment | None = None) -> Verdict:
        """Record a deferred decision in both policies; see `LinearPolicy.activate`."""
        round_ = decision.round if isinstance(decision, Decision) else decision
        entry = self.champion.deferred.find(-round_) if type(round_) is int else None
        verdict = self.champion.activate(decision, at=self._moment(at))
        if entry is not None and verdict is Verdict.ACCEPTED:
            record_activated(self.champion, self.challenger, entry)
            self._arms.note_activation(entry.number)
        return verdict

    def convert(
        self,
        decision: Decision | float | None = None,
        value: float | NotGiven = NOT_GIVEN,
        *,
        at: Moment | None = None,
        subject: str | None = None,
        conversion_id: str | None = None,
        position: int = 1,
    ) -> Verdict:
        """Credit a conversion in both policies, and to the arm that decided; see `LinearPolicy.convert`."""
        at = self._moment(at)
        rounds = self.champion.find_credited(decision, subject, conversion_id, at=at, position=position)
        return self._tell(
            rounds,
            lambda policy: policy.convert(
                decision, value, at=at, subject=subject, conversion_id=conversion_id, position=position
            ),
        )

    def revoke(
        self,
        decision: Decision | float | None = None,
        *,
        at: Moment | None = None,
        conversion_id: str | None = None,
        position: int = 1,
    ) -> Verdict:
        """Take a conversion back in both policies, and from the arm that decided; see `LinearPolicy.revoke`."""
        at = self._moment(at)
        rounds = self.champion.find_credited(decision, None, conversion_id, at=at, position=position)
        return self._tell(
            rounds, lambda policy: policy.revoke(decision, at=at, conversion_id=conversion_id, position=position)
        )

    def correct(self, decision: Decision | float, value: float, *, at: Moment | None = None) -> Verdict:
        """Replace what a decision is credited with, in both policies and its arm; see `LinearPolicy.correct`."""
        at = self._moment(at)
        rounds = self.champion.find_credited(decision, None, None, at=at)
        return self._tell(rounds, lambda policy: policy.correct(decision, value, at=at))

    def _tell(self, rounds: Iterable[int], report: Callable[[LinearPolicy], Verdict]) -> Verdict:
        """Report to both policies what changes the credits of these rounds; return the champion's verdict."""
        verdict = report(self.champion)
        report(self.challenger)
        for round_ in rounds if verdict is Verdict.ACCEPTED else ():
            self._arms.refresh(round_)
        return verdict

    def reach(self, decision: Decision | float, stage: str, *, at: Moment | None = None, position: int = 1) -> Verdict:
        """Report a stage to the policies that have it; see `LinearPolicy.reach`."""
        at, told = self._moment(at), [each for each in (self.champion, self.challenger) if stage in each.stages]
        verdicts = [each.reach(decision, stage, at=at, position=position) for each in told or [self.champion]]
        return verdicts[0]

    def freeze(self) -> None:
        """Have both decide without learning."""
        self.champion.freeze()
        self.challenger.freeze()

    def unfreeze(self) -> None:
        """Have both learn again."""
        self.champion.unfreeze()
        self.challenger.unfreeze()

    def compare(self) -> ArmComparison:
        """Compare the challenger with the champion, over the decisions whose windows have closed.

        Values are in [0, 1]: with a `reward`, shares of its scale. A return after the window changes them.
        """
        (champion, challenger), (earned, challenged) = self._arms.closed, self._arms.sums
        return compare_arms((challenger, challenged), (champion, earned), name="challenger", against="champion")

    def promote(self) -> LinearPolicy:
        """Return the challenger, to decide alone from now on: it has learnt from all rounds.

        It keeps the tables that it shared: the champion must not go on beside it.
        """
        return self.challenger


def _check_arms(champion: LinearPolicy, challenger: LinearPolicy) -> None:
    """Raise `InputError` where two policies cannot take the same reports."""
    if champion is challenger:
        raise InputError("challenger must be another policy than the champion; got the same object", field="challenger")
    for name in ("dim", "window", "grace", "rounds"):
        _check_alike(name, getattr(champion, name), getattr(challenger, name))
    for name, read in _TERMS.items():
        if read(champion) != read(challenger):
            _check_alike(name, *(policy.parameters.get(name) for policy in (champion, challenger)))
    for policy in (champion, challenger):
        if policy.parameters.get("control") is not None:
            raise InputError(
                "control must be left out of both policies: the champion is the challenger's control; got "
                f"{policy.parameters['control']!r}",
                field="challenger",
            )


_TERMS: dict[str, Callable[[LinearPolicy], object]] = {
    "reward": lambda policy: policy.reward,
    "returns": lambda policy: policy.correctable,
    "attribution": lambda policy: policy.attribution,
    "activation_timeout": lambda policy: policy.deferred.timeout,
}
"""The terms on which reports are taken, by the parameter that says so."""


def _check_alike(name: str, one: object, other: object) -> None:
    if one != other:
        raise InputError(
            f"challenger must have the champion's {name}, {one!r}; got {other!r}: make both alike",
            field="challenger",
        )
