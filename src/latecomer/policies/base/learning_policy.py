"""A warm start: decisions that others made."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from latecomer.policies.base.ranking_policy import RankingPolicy
from latecomer.validation import check_positive

if TYPE_CHECKING:
    from latecomer.policies.base.learning import LearnableLog, LearningReport


class LearningPolicy(RankingPolicy):
    """A policy that can learn from a log."""

    table_arrays: Callable[[], dict[str, npt.NDArray[Any]]]
    restore_tables: Callable[[dict[str, npt.NDArray[Any]]], None]

    def learn(self, log: "LearnableLog", *, encoder: Any = None, scale: float = 1.0) -> "LearningReport":
        """Learn from decisions that others made, with their conversions, in the order of time: a warm start.

        The policy becomes, bit for bit, the one that would have recorded these events one by one; rounds whose window
        is still open stay open. It must come before later decisions.

        Parameters
        ----------
        log
            A log of decisions, as `latecomer.read_log` reads it.
        encoder
            Where the log has features by name: the `latecomer.Encoder` that makes actions of them.
        scale
            The largest value that a conversion can have; values are divided by it.
        """
        from latecomer.policies.base.learning import learn  # noqa: PLC0415 - it needs this class

        batches = log.logged_decisions(self._dim, encoder=encoder, scale=check_positive("scale", scale))
        before = self.state.record.copy(), self.state.ring.copy(), self.rng.state()
        tables = self.table_arrays()
        try:
            return learn(self, batches, decisions=log.decisions)  # type: ignore[arg-type]
        except BaseException:  # a mistake in the middle of a log leaves nothing half learnt
            self.state.put_back(*before[:2])
            self.rng.restore(before[2])
            self.restore_tables(tables)
            raise
