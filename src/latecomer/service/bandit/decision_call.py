"""A call for a decision: checked before it meets a bandit, answered by it once, and by the log ever after."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, TypedDict

import numpy.typing as npt
from msgspec import Struct

from latecomer.core.state import Array
from latecomer.policies.base.subjects import digest_subject
from latecomer.service.bandit import action_checks, events, idempotency
from latecomer.service.bandit.idempotency import LoggedDecision
from latecomer.service.bandit.offers import Described
from latecomer.service.messages import DecisionAnswer

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


class CallOptions(TypedDict, total=False):
    """The optional arguments of a decision, as `check_decision_call` takes them."""

    request_id: str | None
    body: bytes | None
    described: Described | None
    deferred: bool
    subject: str | None


class DecisionCall(Struct, frozen=True):
    """The actions, a text for each where there are any, and the digests of the request id and of the body.

    `described` are the features by name that the actions' rows come from, where they do.
    """

    actions: Array
    ids: Sequence[str] | None
    request_id: str | None = None
    request: bytes = b""
    body: bytes = b""
    described: Described | None = None
    deferred: bool = False
    deferred_request: bytes = b""
    """The digest of the request id of a deferred decision, which the index of request ids does not have."""
    subject: str | None = None

    @property
    def digests(self) -> bytes:
        """The digests as the decision's event has them; empty where there is no request id."""
        return self.request + self.body

    @property
    def lookup(self) -> bytes:
        """The digest of the request id, of a deferred decision too; empty where there is none."""
        return self.request or self.deferred_request

    def repeat(self, bandit: "Bandit", known: LoggedDecision, *, shift: int) -> DecisionAnswer:
        """Return the answer that the log has; `ConflictError` where that was to another body, or was not deferred."""
        self.check_same_body(known.body)
        return bandit.repeat_answer(known, shift=shift)

    def run(self, bandit: "Bandit", *, now: int, shift: int) -> tuple[DecisionAnswer, bytes, int]:
        """Have the bandit decide; return the answer, the events for the log, and how many they are."""
        if self.request:
            bandit.deferrals.check_free(self.request_id, self.request)
        answer, data = bandit.decide(self, now=now, shift=shift)
        return answer, data, 1

    def check_same_body(self, body: bytes) -> None:
        """Raise `ConflictError` where the request id was used by a decision with another body, or not deferred."""
        idempotency.check_same_body(str(self.request_id), b"" if self.deferred else self.body, body)


def check_decision_call(
    dim: int,
    actions: npt.ArrayLike,
    ids: Sequence[str] | None = None,
    *,
    request_id: str | None = None,
    body: bytes | None = None,
    described: Described | None = None,
    deferred: bool = False,
    subject: str | None = None,
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
    described
        The context and each action's features by name, where the rows come from those; the log gets them.
    deferred
        Whether the decision counts only once it is activated.
    subject
        The user that the decision is for; the log gets a digest of it.
    """
    array = action_checks.check_action_array(actions, dim)
    if ids is not None:
        action_checks.check_action_ids(ids, len(array))
    if subject is not None:
        digest_subject(subject)  # raises
    if request_id is None:
        return DecisionCall(array, ids, described=described, deferred=deferred, subject=subject)
    request = idempotency.digest_request(request_id)
    digest = (body or idempotency.digest_body(array, ids))[: events.BODY]
    if subject is not None:
        digest = blake2b(digest + digest_subject(subject), digest_size=events.BODY).digest()
    if deferred:
        return DecisionCall(array, ids, request_id, b"", digest, described, True, request, subject)
    return DecisionCall(array, ids, request_id, request, digest, described, subject=subject)
