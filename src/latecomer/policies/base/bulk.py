"""Decisions and conversions in bulk, as a log has them, through the kernels that `decide` and `convert` call.

Stamps are int64 microseconds since 1970, or `UNSTAMPED` where the window is in rounds. The caller must give them in
order: a log's stamps never run backwards.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer.core.action_summary import Shorts
from latecomer.core.conversions import ACCEPTED
from latecomer.core.ring import spanned_blocks
from latecomer.core.state import ROUNDS_PER_BLOCK, UNSTAMPED, Array, Integers
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import DOUBLE, explain_inadmissible
from latecomer.policies.base.baskets import ANONYMOUS
from latecomer.policies.base.decision import Decision
from latecomer.policies.base.many_choices import ManyChoices
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.policy_code import summarise as summarise_kernel
from latecomer.policies.base.staged_code import StagedCode
from latecomer.policies.base.subjects import digest_subject
from latecomer.tiers.tiered_kernel import TieredKernel, compile_mode, request
from latecomer.timestamps import Moment

_DECISIONS_PER_CALL = 16_384


def summarise(actions: Array) -> Shorts:
    """Summarise an action set in d + 2 short integers: what a replay must know of the actions that were not chosen."""
    summary = np.empty(actions.shape[1] + 2, np.int16)
    summarise_kernel.call(_in_rows(actions), summary)
    return summary


def latest_summary(policy: LinearPolicy, actions: Array) -> Shorts:
    """Return the summary of the latest decision's action set: the algorithm's own, where it has made one."""
    if policy.algorithm.observe_actions is None:
        return summarise(actions)
    summary: Shorts = policy.state.record["action_summary"][0].copy()
    return summary


def decide(
    policy: LinearPolicy,
    sets: Sequence[Array],
    *,
    at: Moment | None,
    controls: Sequence[int | None],
    subjects: Sequence[str | None],
) -> tuple[list[Decision], Shorts]:
    """Decide as calls of `policy.decide` would, one after the other, at one time; return the summaries of the sets too.

    The sets must be admissible; `controls` and `subjects` have the arguments of each call. The decisions' actions are
    rows of the sets.
    """
    state, count, first = policy.state, len(sets), policy.rounds + 1
    stamps = policy._clock.decision_stamps(at, count, now=policy.latest_stamp, rounds=policy.rounds).tolist()
    draws: Any = policy.rng.draws(count, policy.dim)
    if not policy._takes_draws:
        draws = [None] * count
    summaries = np.empty((count, policy.dim + 2), np.int16)
    own = None if policy.algorithm.observe_actions is None else state.record["action_summary"][0]
    decisions = []
    for round_, (actions, stamp, drawn, control, subject, summary) in enumerate(
        zip(sets, stamps, draws, controls, subjects, summaries, strict=True), start=first
    ):
        index, score, signed = state.decide_signed(actions, stamp, drawn, control)
        if own is None:
            summarise_kernel.call(actions, summary)
        else:
            summary[:] = own
        if subject is not None:
            policy.subjects.add(digest_subject(subject), round_, int(state.number("kept")))
        decisions.append(
            Decision(round_, index, actions[index], score, *policy._read_propensity(score, signed, len(actions)))
        )
    return decisions, summaries


def can_decide_together(policy: LinearPolicy) -> bool:
    """Tell whether `decide_together` runs in the tier that `decide` runs in; where it is behind, ask for its code."""
    code = policy.state.code
    many, one = code.decide_many, code.decide_small
    if isinstance(code, StagedCode) or not isinstance(many, TieredKernel) or isinstance(one, TieredKernel):
        return not isinstance(code, StagedCode)
    if compile_mode() == "now":
        return True
    request([many])
    return False


def decide_together(policy: LinearPolicy, rows: Array, ends: Integers, *, at: Moment | None) -> ManyChoices:
    """Decide as `decide` does, without controls and subjects, by one call of a kernel, with propensities.

    Set i is the rows from the end of the set before it to ends[i].
    """
    stamps = policy._clock.decision_stamps(at, len(ends), now=policy.latest_stamp, rounds=policy.rounds)
    draws = policy.rng.draws(len(ends), policy.dim)
    found = policy.state.decide_many(rows, ends, stamps, draws, summarises=True)
    counts = np.diff(ends, prepend=0)
    return found if policy._is_randomised else found._replace(signed=_known_propensities(policy, found.scores, counts))


def _known_propensities(policy: LinearPolicy, scores: Array, counts: Integers) -> Array:
    """Return the propensities of choices that are not drawn by them, as `_read_propensity` does for each."""
    if policy.algorithm.scores_are_probabilities:
        return scores
    return np.where(counts == 1, 1.0, policy._propensity or math.nan)


def _in_rows(actions: Array) -> Array:
    """Make an array aligned and row by row. Where it is so already, `np.require` would take longer than the rest."""
    flags = actions.flags
    if actions.dtype is DOUBLE and flags.c_contiguous and flags.aligned:
        return actions
    return np.require(actions, np.float64, ["C", "A"])


def record(policy: LinearPolicy, actions: Array, summaries: Shorts, stamps: Integers) -> None:
    """Record decisions as if `decide` had just chosen these actions, and draw the random numbers that it would have.

    After it the policy is, bit for bit, the one that made the decisions. `summaries` has a row of `summarise` for each.

    Examples
    --------
    >>> import numpy as np, latecomer as lc
    >>> live, replayed = (lc.OTFLinTS(dim=2, window=100, seed=0) for _ in range(2))
    >>> chosen = np.array([live.decide(np.eye(2)).action for _ in range(9)])
    >>> record(replayed, chosen, np.tile(summarise(np.eye(2)), (9, 1)), np.full(9, UNSTAMPED))
    >>> replayed.decide(np.eye(2)).score == live.decide(np.eye(2)).score
    True
    """
    actions = _in_rows(actions)
    if actions.ndim != 2 or actions.shape[1] != policy.dim or stamps.shape != (len(actions),):
        raise InputError(
            f"actions must be an (N, {policy.dim}) array with one stamp each; got {actions.shape} and {stamps.shape}"
        )
    if not len(actions):
        return
    if not policy.state.is_admissible(actions):
        raise explain_inadmissible(actions)
    if summaries.shape != (len(actions), policy.dim + 2):
        raise InputError(f"summaries must be an (N, {policy.dim + 2}) array, a row each; got {summaries.shape}")
    stamps = _stamps(policy, stamps)
    summaries = np.ascontiguousarray(summaries, np.int16)
    for low in range(0, len(actions), _DECISIONS_PER_CALL):
        part = slice(low, low + _DECISIONS_PER_CALL)
        draws = policy.rng.draws(len(actions[part]), policy.dim)
        policy.state.record_many(actions[part], summaries[part], stamps[part], draws)


def convert(
    policy: LinearPolicy, rounds: Integers, values: Array, stamps: Integers, reported: Integers | None = None
) -> tuple[Integers, Integers]:
    """Apply conversions in their order: verdicts by their numbers, and the delays of the accepted ones.

    A stamp is when a conversion occurred; one before the latest decision counts as that one's, and the delay of one
    before its own decision is −1, unknown. `reported` says when each was reported, where that was later. Values are in
    [0, 1]: with a reward, shares of its scale.
    """
    if policy.keeps_baskets:
        scale, anonymous = policy.reward.scale, [ANONYMOUS] * len(rounds)
        reported, apart = stamps if reported is None else reported, np.zeros(len(rounds), np.bool_)
        found = convert_amounts(policy, rounds, values * scale, anonymous, stamps, reported, apart)
        return found.verdicts, found.delays
    stamps = _stamps(policy, stamps)
    return policy.state.convert_many(rounds, values, stamps, stamps if reported is None else _stamps(policy, reported))


class Credited(NamedTuple):
    """Verdicts on conversions with amounts or ids, and delays, −1 where unknown, of those that are `is_first`.

    `credits` are those that the rounds of accepted ones then have, `is_capped` tells which of these the scale limits.
    """

    verdicts: Integers
    delays: Integers
    is_first: npt.NDArray[np.bool_]
    credits: Array
    is_capped: npt.NDArray[np.bool_]


def convert_amounts(
    policy: LinearPolicy,
    rounds: Integers,
    amounts: Array,
    digests: Sequence[bytes],
    stamps: Integers,
    reported: Integers,
    is_joined: npt.NDArray[np.bool_],
) -> Credited:
    """Apply conversions that have amounts or ids, in their order.

    `is_joined` tells which are the same report as the one before it, credited to another decision too.
    """
    stamps, reported = _stamps(policy, stamps), _stamps(policy, reported)
    count = len(rounds)
    found = Credited(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.bool_),
        np.zeros(count),
        np.zeros(count, np.bool_),
    )
    reports = zip(rounds.tolist(), amounts.tolist(), digests, stamps.tolist(), reported.tolist(), strict=True)
    known = set[int]()
    for place, (report, joined) in enumerate(zip(reports, is_joined.tolist(), strict=True)):
        if not joined:
            known = set(policy.find_conversion(*report[2:]))
        found.verdicts[place], found.delays[place], found.is_first[place] = policy.credit_report(*report, known)
        basket = policy.baskets.find(report[0])
        if found.verdicts[place] == ACCEPTED and basket is not None:
            found.credits[place] = basket.credit
            found.is_capped[place] = policy.reward.is_capped(basket.kept_amounts)
    return found


def revoke(policy: LinearPolicy, round: int, stamp: int, reported: int, digest: bytes | None = None) -> int:
    """Revoke one conversion of a round, or all of them; return the verdict by its number."""
    if isinstance(policy.window, int):
        stamp = reported = UNSTAMPED
    return policy.revoke_conversion(round, digest, stamp, reported)


def correct(policy: LinearPolicy, round: int, amount: float, stamp: int, reported: int) -> tuple[int, float]:
    """Replace what a round is credited with by an amount; return the verdict by its number, and the credit."""
    if isinstance(policy.window, int):
        stamp = reported = UNSTAMPED
    verdict = policy.correct_credit(round, amount, stamp, reported)
    return verdict, policy.reward.credit([amount]) if verdict == ACCEPTED else 0.0


def _stamps(policy: LinearPolicy, stamps: Integers) -> Integers:
    return np.full(len(stamps), UNSTAMPED) if isinstance(policy.window, int) else stamps


def drift(policy: LinearPolicy) -> tuple[float, int]:
    """Return |V·V⁻¹ − I| at the last check, and how often V⁻¹ was computed afresh."""
    return float(policy.state.number("residual")), int(policy.state.number("refactorisations"))


def read_open(policy: LinearPolicy, field: str) -> Integers | Array:
    """Return a field of the open rounds, oldest first."""
    record = policy.state.record
    return read_held(policy, field)[record["oldest"].item() - record["kept"].item() :]


def read_held(policy: LinearPolicy, field: str) -> Integers | Array:
    """Return a field of the rounds that the ring holds, those in their grace and the open ones, oldest first.

    Of their actions it is the largest entry, in size.
    """
    record, ring = policy.state.record, policy.state.ring
    head, oldest, kept, rounds = (record[name].item() for name in ("head", "oldest", "kept", "rounds"))
    first, held = (kept - 1) % ROUNDS_PER_BLOCK, rounds - kept + 1
    start = (head - (oldest - kept)) // ROUNDS_PER_BLOCK
    blocks = (start + np.arange(spanned_blocks(first, held))) % len(ring)
    found = ring[field][blocks]
    values: Integers | Array = (abs(found).max(axis=1) if field == "action" else found).ravel()[first : first + held]
    return values
