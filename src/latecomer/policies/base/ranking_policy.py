"""Rankings of a policy: k different actions at once, each a round of its own, the later ones perhaps seen less.

A person who looks at position j with probability x_j (its examination) converts there with probability x_j·⟨a, θ⟩, that
is ⟨x_j·a, θ⟩. So the round of position j is recorded with the action x_j·a, and everything else stays as it is.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.core.rng import mix, seed_from
from latecomer.core.state import UNSTAMPED, Array, Integers
from latecomer.errors import InputError
from latecomer.policies.base.action_validation import check_actions, explain_inadmissible
from latecomer.policies.base.choice_probabilities import NO_CONTROL
from latecomer.policies.base.decision import Decision
from latecomer.policies.base.ranking import Ranking, RankingDraw
from latecomer.policies.base.search import ExactSearch, Oracle, rank_by_score, summarise
from latecomer.policies.base.searching_policy import SearchingPolicy
from latecomer.policies.base.subjects import digest_subject
from latecomer.policies.base.theta_samples import ThetaSamples, draw_thetas
from latecomer.timestamps import Moment
from latecomer.validation import check_integer, short_repr


class RankingPolicy(SearchingPolicy):
    """A policy that can choose several actions at once."""

    def _decide_ranking(
        self, actions: npt.ArrayLike | None, k: int, oracle: Oracle | None, deferred: bool, options: dict[str, Any]
    ) -> Decision:
        """Check what cannot be ranked, and rank."""
        for name, is_given in (("oracle", oracle is not None), ("deferred", deferred)):
            if is_given:
                raise InputError(f"{name} must be left out where k or examination is given", field=name)
        return self._choose_ranking(check_actions(actions, self._dim), k, **options)

    def _choose_ranking(
        self,
        actions: Array,
        k: int,
        *,
        at: Moment | None,
        control: int | None,
        subject: str | None,
        examination: Sequence[float] | None,
    ) -> Decision:
        """Choose k different actions, ranked, and record a round for each, in their order."""
        k = self.check_ranking(actions, k)
        check_examination(examination, k)
        if control is not None:
            control = self._randomisation.check_index(control, len(actions))
        scores = None if self.samples_theta else self.scores(actions, at=at)
        search = ExactSearch(actions, summarise(actions))
        return self._rank_and_record(
            search, k, scores, at=at, control=control, subject=subject, examination=examination
        )

    def rank_by_search(
        self,
        search: ExactSearch,
        k: int,
        *,
        at: Moment | None = None,
        control: int | None = None,
        subject: str | None = None,
        examination: Sequence[float] | None = None,
    ) -> Decision:
        """Rank the k best of a search's actions for a sampled θ̃, and record a round for each; as `decide` with k."""
        self._check_search(search)
        check_integer("k", k, least=1)
        self._check_count(k, search.count)
        return self._rank_and_record(search, k, None, at=at, control=control, subject=subject, examination=examination)

    def _rank_and_record(
        self,
        search: ExactSearch,
        k: int,
        scores: Array | None,
        *,
        at: Moment | None,
        control: int | None,
        subject: str | None,
        examination: Sequence[float] | None,
    ) -> Decision:
        """Rank the actions of a search, of which an optimist has scores, and record a round for each position."""
        seen, digest = check_examination(examination, k), b"" if subject is None else digest_subject(subject)
        unstamped = at is None and self._in_rounds
        stamp = UNSTAMPED if unstamped else self._clock.decision_stamp(at, now=self._now, rounds=self.rounds)
        draws = self.rng.draws(k, self._dim)
        ranking, score = self._rank(search, k, scores, self._moment(stamp), control, draws[0])
        rows, first = np.stack([search.take(index) for index in ranking.indices]), self.rounds + 1
        summaries = np.tile(search.summary, (k, 1))
        self.state.record_many(rows * seen[:, None], summaries, np.full(k, stamp), draws)
        if digest:
            for round_ in range(first, first + k):
                self.subjects.add(digest, round_, int(self.state.number("kept")))
        return Decision(
            first,
            ranking.indices[0],
            rows[0].copy(),
            score,
            ranking.first,
            ranking.is_control,
            tuple(ranking.indices),
            ranking.included,
        )

    def check_ranking(self, actions: Array, k: int) -> int:
        """Return k; `InputError` where there are fewer actions, or the policy cannot rank them."""
        check_integer("k", k, least=1)
        self._check_no_ceiling("a ranking", field="k")
        self._check_count(k, len(actions))
        if self.algorithm.guards is not None:
            raise InputError(
                "k must be 1 for a policy with a guard, which judges one proposal; leave one out", field="k"
            )
        if not self.state.is_admissible(actions):
            raise explain_inadmissible(actions)
        return k

    def _check_count(self, k: int, count: int) -> None:
        if k > count:
            raise InputError(f"k must be at most the number of actions, {count}; got {k}", field="k")

    def _rank(
        self, search: ExactSearch, k: int, scores: Array | None, moment: int, control: int | None, draws: Array
    ) -> tuple[Ranking, float]:
        """Return a ranking, and the score of its first action."""
        draw, rankings, number, samples = self._propose_rankings(search, k, scores, moment, control, draws)
        if samples is not None and not self._is_randomised:
            score = samples.score(search.take(rankings[0, 0]), samples.thetas[0], float(samples.intercepts[0]))
            return Ranking.make_unknown(rankings[0].tolist(), search.count), score
        ranking = draw.draw(search, rankings, number, search.count)
        if samples is not None:
            return ranking, samples.score(search.take(ranking.indices[0]), samples.mean)
        return ranking, float(scores[ranking.indices[0]]) if scores is not None else 0.0

    def _propose_rankings(
        self, search: ExactSearch, k: int, scores: Array | None, moment: int, control: int | None, draws: Array
    ) -> tuple[RankingDraw, Integers, float, ThetaSamples | None]:
        """Return the rankings to draw from, by which shares and which number; and the samples, of a sampler."""
        draw = RankingDraw.make(self._randomisation, control, search)
        if scores is None:
            samples = draw_thetas(self.state, search.summary, stamp=moment, draws=draws)
            return draw, search.find_best(samples.thetas, k, samples.bonus), samples.number, samples
        if self.algorithm.scores_are_probabilities:  # of `Uniform`, 1/K each: any ranking is as likely
            number = _read_number(draws) if self._is_randomised else float(draws[0])
            return RankingDraw(floor=1.0, share=draw.share, control=draw.control), np.arange(k)[None], number, None
        best: Integers = np.array([rank_by_score(np.arange(search.count), scores, k)])
        if self._is_randomised:
            return draw, best, _read_number(draws), None
        return RankingDraw(floor=0.0, share=0.0, control=NO_CONTROL), best, 0.0, None

    def assess_ranking(
        self, actions: Array, indices: Sequence[int], *, at: Moment | None = None
    ) -> tuple[float, tuple[float, ...]]:
        """Return the propensities of the first of some actions, and of the inclusion of each, in the next ranking.

        Nothing is recorded. They are exact where the policy knows its propensities.
        """
        k = self.check_ranking(actions, len(indices))
        unstamped = at is None and self._in_rounds
        stamp = UNSTAMPED if unstamped else self._clock.decision_stamp(at, now=self._now, rounds=self.rounds)
        search = ExactSearch(actions, summarise(actions))
        scores = None if self.samples_theta else self.scores(actions, at=at)
        own = self.rng.state()
        draws = self.rng.draws(k, self._dim)
        self.rng.restore(own)
        draw, rankings, _, _ = self._propose_rankings(search, k, scores, self._moment(stamp), None, draws[0])
        return draw.assess(list(indices), rankings, search.count)


def _read_number(draws: Array) -> float:
    """Return the uniform number of a choice by known probabilities, as kernels make it."""
    with np.errstate(over="ignore"):
        return float(mix(seed_from(float(draws[-1])))[1])


def check_examination(examination: Sequence[float] | None, k: int) -> Array:
    """Return the probabilities that each position is looked at; 1 each where none are given."""
    if examination is None:
        return np.ones(k)
    try:
        found = np.asarray(examination, np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.shape != (k,) or not ((found > 0.0) & (found <= 1.0)).all():
        raise InputError(
            f"examination must be {k} numbers above 0 and at most 1, one for each position; got "
            f"{short_repr(examination)}",
            field="examination",
        )
    return found


def estimate_examination(positions: npt.ArrayLike, converted: npt.ArrayLike) -> list[float]:
    """Estimate the examination of each position from rankings in a random order: rates over that of the first.

    In a uniformly random order (the rounds of a uniform control, or those of `Uniform`) every position has the same
    actions on average, so that conversion rates differ by examination alone. Rates are made non-increasing (isotonic
    regression), for a later position is not looked at more.

    Parameters
    ----------
    positions
        The position of each decision, from 1.
    converted
        1 for each that has converted, 0 for the others; or values.

    Examples
    --------
    >>> estimate_examination([1, 2, 3] * 100, [1, 0, 0] * 30 + [1, 1, 0] * 20 + [0, 0, 0] * 49 + [0, 0, 1])
    [1.0, 0.4, 0.02]
    """
    places, values = np.asarray(positions), np.asarray(converted, np.float64)
    if places.ndim != 1 or places.shape != values.shape or not len(places) or (places < 1).any():
        raise InputError("positions and converted must be lists of one length, of positions from 1", field="positions")
    counts = np.bincount(places)[1:].astype(np.float64)
    sums = np.bincount(places, weights=values)[1:]
    if (counts == 0.0).any() or sums[0] <= 0.0:
        raise InputError("every position must occur, and the first must have converted", field="converted")
    blocks: list[list[float]] = []
    for total, count in zip(sums, counts, strict=True):
        blocks.append([float(total), float(count), 1.0])
        while len(blocks) > 1 and blocks[-1][0] * blocks[-2][1] > blocks[-2][0] * blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    rates = [total / count for total, count, size in blocks for _ in range(int(size))]
    return [rate / rates[0] for rate in rates]
