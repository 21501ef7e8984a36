"""A call for a decision: checked before it meets a bandit, answered by it once, and by the log ever after."""

from collections.abc import Sequence

import numpy.typing as npt
from msgspec import Struct

from latecomer.core.state import Array
from latecomer.service.bandit import action_checks, events, idempotency
from latecomer.service.bandit.bandit import Bandit
from latecomer.service.bandit.idempotency import LoggedDecision
from latecomer.service.messages import DecisionAnswer


class DecisionCall(Struct, frozen=True):
    """The actions, a text for each where there are any, and the digests of the request id and of the body."""

    actions: Array
    ids: Sequence[str] | None
    request_id: str | None = None
    request: bytes = b""
    body: bytes = b""

    @property
    def digests(self) -> bytes:
        """The digests as the decision's event has them; empty where there is no request id."""
        return self.request + self.body

    def repeat(self, bandit: Bandit, known: LoggedDecision, *, shift: int) -> DecisionAnswer:
        """Return the answer that the log has; `ConflictError` where that was to another body."""
        self.check_same_body(known.body)
        return idempotency.rebuild_answer(bandit, known, shift=shift)

    def check_same_body(self, body: bytes) -> None:
        """Raise `ConflictError` where the request id was used with another body."""
        idempotency.check_same_body(str(self.request_id), self.body, body)


def check_decision_call(
    dim: int,
    actions: npt.ArrayLike,
    ids: Sequence[str] | None = None,
    *,
    request_id: str | None = None,
    body: bytes | None = None,
) -> DecisionCall:
    """Return a call whose shape is right; `InputError` where it is not.

    Parameters
    ----------
    dim
        The bandit's d.
    actions
        A (K, d) array-like.
    ids
        A text for each action.
    request_id
        The same id and body get the same answer, as long as the log keeps it.
    body
        At least 8 bytes that identify the body; computed from actions and ids where they are not given.
    """
    array = action_checks.check_action_array(actions, dim)
    if ids is not None:
        action_checks.check_action_ids(ids, len(array))
    if request_id is None:
        return DecisionCall(array, ids)
    request = idempotency.digest_request(request_id)
    digest = (body or idempotency.digest_body(array, ids))[: events.BODY]
    return DecisionCall(array, ids, request_id, request, digest)
