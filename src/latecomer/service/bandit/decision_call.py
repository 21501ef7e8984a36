"""A call for a decision: checked before it meets a bandit, answered by it once, and by the log ever after."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from latecomer.core.action_summary import Shorts
from latecomer.core.state import Array
from latecomer.errors import InputError
from latecomer.policies.base import bulk
from latecomer.policies.base.decision import Decision
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.base.ranking_policy import check_examination
from latecomer.policies.base.subjects import digest_subject
from latecomer.service.bandit import action_checks, events, idempotency
from latecomer.service.bandit.catalogue_pick import CataloguePick, PickedActions, pick_actions
from latecomer.service.bandit.idempotency import LoggedDecision
from latecomer.service.bandit.offers import Described, Features, pack_offer
from latecomer.service.bandit.selection import Choice, select_actions
from latecomer.service.messages import DecisionAnswer, check_request_id
from latecomer.validation import check_flag, check_integer

if TYPE_CHECKING:
    from latecomer.service.bandit.bandit import Bandit


MAX_RANKED = 100
"""Positions of a ranking."""


class DecisionCall(Struct, frozen=True):
    """The actions, a text for each where there are any, and the digests of the request id and of the body.

    `described` are the features by name that the actions' rows come from, where they do.
    """

    actions: Array | None
    ids: Sequence[str] | None
    request_id: str | None = None
    request: bytes = b""
    body: bytes = b""
    described: Described | None = None
    deferred: bool = False
    deferred_request: bytes = b""
    """The digest of the request id of a deferred decision, which the index of request ids does not have."""
    subject: str | None = None
    places: list[int] | None = None
    """The places of the actions in the request, where it has left some out."""
    request_count: int = 0
    """The number of the request's actions."""
    probabilities: bool = False
    """True where the answer has the probabilities of all actions of the request."""

    def find_place(self, index: int) -> int:
        """Return the place in the request of one of the actions."""
        return index if self.places is None else self.places[index]

    def place_probabilities(self, probabilities: Array) -> list[float]:
        """Return a probability for each action of the request: 0 for those that were left out."""
        found = np.zeros(self.request_count)
        found[slice(None) if self.places is None else self.places] = probabilities
        return found.tolist()

    pick: CataloguePick | None = None
    """In place of the actions: what the decision takes from the bandit's catalogue."""
    picked: PickedActions | None = None
    """The actions that it has taken."""
    k: int = 1
    examination: Sequence[float] | None = None
    """Of a ranking, and of nothing else: the probability that each of its k positions is looked at."""

    def pick_actions(self, bandit: "Bandit") -> "DecisionCall":
        """Return the call with the actions that it takes from the catalogue as it is now; itself, where it has them."""
        if self.pick is None:
            return self
        picked = pick_actions(bandit, self.pick, needs_rows=bandit.contest is not None)
        return structs.replace(self, actions=picked.rows, ids=picked.ids, picked=picked)

    def find_control(self, control_id: str | None) -> int | None:
        """Return the index of the action that the control plays by its id."""
        if self.picked is not None:
            return self.picked.control
        if control_id is None or self.ids is None or control_id not in self.ids:
            return None
        return self.ids.index(control_id)

    def find_places(self, limited_ids: Sequence[str]) -> dict[str, int] | None:
        """Return the indices of the actions that have limits; None where the policy has none."""
        if not limited_ids:
            return None
        return {id_: self.ids.index(id_) for id_ in limited_ids if id_ in self.ids} if self.ids is not None else {}

    def choose(self, policy: LinearPolicy, *, at: float | None, control: int | None) -> tuple[Decision, Shorts]:
        """Have the policy decide; return the decision, and the summary of the actions."""
        if self.picked is not None and self.picked.search is not None:
            search = self.picked.search
            decision = policy.decide_by_search(
                search, at=at, control=control, deferred=self.deferred, subject=self.subject
            )
            return decision, search.summary
        rows, places = self.rows, self.find_places(policy.limited_ids)
        if control is None and places is None and self.subject is None and not self.deferred:
            decision = policy.decide(rows, at=at)
        else:
            decision = policy.decide(
                rows, at=at, control=control, places=places, deferred=self.deferred, subject=self.subject
            )
        return decision, bulk.latest_summary(policy, rows)

    @property
    def rows(self) -> Array:
        """The actions, which a call among the catalogue has once it has taken them."""
        if self.actions is None:
            raise AssertionError("a decision without actions has not taken any from the catalogue")
        return self.actions

    def pack_offer(self) -> bytes:
        """Return the offer for the log."""
        if self.picked is not None:
            return self.picked.offer
        return pack_offer(self.rows, self.ids, self.described)

    @property
    def context(self) -> Features | None:
        """The features of the context, where there are any."""
        if self.pick is not None:
            return self.pick.context
        return self.described[0] if self.described else None

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
            bandit.deferrals.check_free(self.request_id, self.request, now)
        answer, data = bandit.decide(self, now=now, shift=shift)
        return answer, data, self.k

    def check_same_body(self, body: bytes) -> None:
        """Raise `ConflictError` where the request id was used by a decision with another body, or not deferred."""
        idempotency.check_same_body(str(self.request_id), b"" if self.deferred else self.body, body)


def check_decision_call(
    dim: int,
    actions: npt.ArrayLike | None = None,
    ids: Sequence[str] | None = None,
    *,
    request_id: str | None = None,
    body: bytes | None = None,
    described: Described | None = None,
    deferred: bool = False,
    subject: str | None = None,
    exclude: Sequence[Choice] | None = None,
    pin: Choice | None = None,
    probabilities: bool = False,
    pick: CataloguePick | None = None,
    k: int = 1,
    examination: Sequence[float] | None = None,
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
    exclude
        Actions that must not be chosen, by index or id.
    pin
        The action that must be chosen, by index or id.
    probabilities
        Whether the answer has the probabilities of all actions.
    pick
        What the decision takes from the catalogue, in place of actions.
    k, examination
        How many actions to choose, and the probability that each position is looked at.
    """
    if type(k) is not int or k != 1 or examination is not None:
        return _check_ranking_call(
            check_decision_call(
                dim,
                actions,
                ids,
                request_id=request_id,
                body=body,
                described=described,
                deferred=deferred,
                subject=subject,
                exclude=exclude,
                pin=pin,
                pick=pick,
            ),
            k,
            examination,
        )
    array = None
    if pick is None or actions is not None:
        array = action_checks.check_action_array(actions, dim)
    if ids is not None and array is not None:
        ids = action_checks.check_action_ids(ids, len(array))
    if deferred is not False:
        deferred = check_flag("deferred", deferred)
    if subject is not None:
        digest_subject(subject)  # raises
    places = None
    if array is not None and (exclude is not None or pin is not None):
        places = select_actions(len(array), ids, exclude, pin)
    if request_id is None:
        call = DecisionCall(array, ids, described=described, deferred=deferred, subject=subject, pick=pick)
    else:
        request_id = check_request_id(request_id)
        request = idempotency.digest_request(request_id)
        if body is None:
            body = idempotency.digest_body(array, ids) if array is not None else pick.digest() if pick else b""
        digest = body[: events.BODY]
        if subject is not None:
            digest = blake2b(digest + digest_subject(subject), digest_size=events.BODY).digest()
        if places is not None:
            digest = blake2b(digest + array_bytes(places), digest_size=events.BODY).digest()
        if deferred:
            call = DecisionCall(array, ids, request_id, b"", digest, described, True, request, subject, pick=pick)
        else:
            call = DecisionCall(array, ids, request_id, request, digest, described, subject=subject, pick=pick)
    if array is None or (places is None and not probabilities):
        return call
    return _leave_out(call, places, probabilities)


def _check_ranking_call(call: DecisionCall, k: int, examination: Sequence[float] | None) -> DecisionCall:
    """Return a call for k actions; its body's digest knows them."""
    k = check_integer("k", k, least=1)
    if k == 1 and examination is None:
        return call
    if k > MAX_RANKED or (call.actions is not None and k > len(call.actions)):
        most = MAX_RANKED if call.actions is None else min(MAX_RANKED, len(call.actions))
        raise InputError(f"k must be at most {most}, the actions to choose from; got {k}", field="k")
    seen = check_examination(examination, k)
    if call.deferred:
        raise InputError("deferred must be left out where k or examination is given", field="deferred")
    body = call.body and blake2b(call.body + bytes([k]) + seen.tobytes(), digest_size=events.BODY).digest()
    return structs.replace(call, k=k, examination=seen.tolist(), body=body)


def array_bytes(places: list[int]) -> bytes:
    """Return places as bytes."""
    return np.array(places, "<u4").tobytes()


def _leave_out(call: DecisionCall, places: list[int] | None, probabilities: bool) -> DecisionCall:
    """Return a call for a decision among the actions at these places alone."""
    kept = {"request_count": len(call.rows), "probabilities": probabilities}
    if places is None:
        return structs.replace(call, **kept)
    described = call.described and (call.described[0], [call.described[1][place] for place in places])
    ids = None if call.ids is None else [call.ids[place] for place in places]
    return structs.replace(call, actions=call.rows[places], ids=ids, described=described, places=places, **kept)
