"""Azure Personalizer's API, called by Microsoft's own client: Rank, Reward, Activate, and errors in its shape."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers import Server, run_server

from latecomer.service.http.keys import FRESH, KeyFile
from latecomer.service.http.personalizer_messages import flatten_features

pytest.importorskip("azure.cognitiveservices.personalizer")
from azure.cognitiveservices.personalizer import PersonalizerClient
from azure.cognitiveservices.personalizer.models import ErrorResponseException, RankableAction, RankRequest
from msrest.authentication import CognitiveServicesCredentials
from msrest.exceptions import HttpOperationError

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")
MEALS: dict[str, list[dict[str, Any]]] = {
    "pasta": [{"taste": "salty", "spice": 0.4}, {"nutrition": {"calories": 0.6}}],
    "salad": [{"taste": "fresh", "spice": 0.1}, {"nutrition": {"calories": 0.2}}],
    "soup": [{"taste": "salty", "tags": ["warm", "quick"]}, {"vector": [0.1, 0.2]}],
    "cake": [{"taste": "sweet"}],
}
CONTEXT: list[dict[str, Any]] = [{"timeOfDay": "morning"}, {"device": {"kind": "phone", "wide": False}}]


class Service:
    def __init__(self, server: Server) -> None:
        self.server = server
        keys = KeyFile(Path(f"{server.store}.keys"))
        self.admin = keys.add(scopes=("admin", "read", "decide", "convert"), bandits=("*",))[0]
        self.key = keys.add(scopes=("decide", "convert"), bandits=("personalizer", "meals"))[0]
        time.sleep(2 * FRESH)
        for name in ("personalizer", "meals", "other"):
            self.call("PUT", f"/v1/bandits/{name}", {"dim": 16, "window": "30 min", "parameters": {"seed": 1}})

    def call(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.admin}"}
        answer = self.server.http.request(method, path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    def client(self, path: str = "", key: str | None = None) -> Any:
        return PersonalizerClient(f"{self.server.url}{path}", CognitiveServicesCredentials(key or self.key))

    def stats(self, name: str = "personalizer") -> Any:
        return self.call("GET", f"/v1/bandits/{name}/stats")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_server(tmp_path_factory.mktemp("personalizer") / "a.db") as server:
        yield Service(server)


def make_request(event: str | None = None, *, excluded: list[str] | None = None, **more: Any) -> Any:
    actions = [RankableAction(id=id_, features=features) for id_, features in MEALS.items()]
    return RankRequest(actions=actions, context_features=CONTEXT, event_id=event, excluded_actions=excluded, **more)


def test_rank_gives_all_probabilities_and_the_chosen_first(service: Service) -> None:
    found = service.client().rank(make_request("rank 1"))
    assert found.event_id == "rank 1"
    assert sorted(action.id for action in found.ranking) == sorted(MEALS)
    assert found.ranking[0].id == found.reward_action_id
    probabilities = [action.probability for action in found.ranking]
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-12)
    assert min(probabilities) >= 0.02 / 4 - 1e-12  # the default policy's floor
    assert probabilities[1:] == sorted(probabilities[1:], reverse=True)
    again = service.client().rank(make_request("rank 1"))
    assert again.serialize(keep_readonly=True) == found.serialize(keep_readonly=True)
    made = service.client().rank(make_request())
    assert made.event_id not in ("", "rank 1", service.client().rank(make_request()).event_id)


def test_the_probability_of_the_choice_is_that_of_the_decision(service: Service) -> None:
    ranked = service.client("/v1/bandits/meals").rank(make_request("one", excluded=["pasta"]))
    chosen = next(action for action in ranked.ranking if action.id == ranked.reward_action_id)
    actions = [{"id": id_, "features": flatten_features(features)} for id_, features in MEALS.items()]
    body = {"actions": actions, "context": flatten_features(CONTEXT), "request_id": "one", "subject": "one"}
    decision = service.call(
        "POST", "/v1/bandits/meals/decisions", body | {"exclude": ["pasta"]}
    )  # the same, by our API
    assert (decision["action_id"], decision["propensity"]) == (chosen.id, chosen.probability)


def test_excluded_actions_stay_in_their_places_with_probability_0(service: Service) -> None:
    for i in range(6):
        found = service.client().rank(make_request(f"excluded {i}", excluded=["pasta", "soup"]))
        assert (found.ranking[0].id, found.ranking[2].id) == ("pasta", "soup")
        assert found.ranking[0].probability == found.ranking[2].probability == 0.0
        assert found.reward_action_id == found.ranking[1].id in ("salad", "cake")
        assert sum(action.probability for action in found.ranking) == pytest.approx(1.0, abs=1e-12)


def test_rewards_are_credited_to_their_events(service: Service) -> None:
    client, before = service.client(), service.stats()["conversions"]
    long = "e/" * 128  # 256 characters, and slashes
    for event in ("reward 1", long):
        client.rank(make_request(event))
        client.events.reward(event, 0.8)
        client.events.reward(event, 0.8)  # the same again
    after = service.stats()["conversions"]
    assert (after["accepted"] - before["accepted"], after["duplicate"] - before["duplicate"]) == (2, 2)


def test_a_deferred_event_counts_once_it_is_activated(service: Service) -> None:
    client, rounds = service.client(), service.stats()["rounds"]
    first = client.rank(make_request("later", defer_activation=True))
    assert client.rank(make_request("later", defer_activation=True)).reward_action_id == first.reward_action_id
    assert service.stats()["rounds"] == rounds
    with pytest.raises(HttpOperationError) as error:
        client.events.reward("later", 1.0)
    assert error.value.response.status_code == 404
    client.events.activate("later")
    client.events.activate("later")  # the same again
    client.events.reward("later", 1.0)
    assert service.stats()["rounds"] == rounds + 1


WRONG: dict[str, tuple[Any, int, str, str | None]] = {
    "no actions": (lambda: RankRequest(actions=[]), 400, "BadRequest", "actions"),
    "all excluded": (lambda: make_request(excluded=list(MEALS)), 400, "BadRequest", "excludedActions"),
    "unknown excluded": (lambda: make_request(excluded=["tea"]), 400, "BadRequest", "excludedActions"),
    "twice": (
        lambda: RankRequest(actions=[RankableAction(id="a", features=[{"x": 0.1}])] * 2), 400, "BadRequest", "actions",
    ),
    "a large number": (
        lambda: RankRequest(actions=[RankableAction(id="a", features=[{"price": 30.0}])]), 400, "BadRequest", None,
    ),
    "a long id": (
        lambda: RankRequest(actions=[RankableAction(id="a" * 201, features=[])]), 400, "BadRequest", "actions",
    ),
    "another body": (lambda: make_request("rank 1", excluded=["cake"]), 409, "BadRequest", "eventId"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_rank_has_an_error_in_its_shape(service: Service, case: str) -> None:
    make, status, code, target = WRONG[case]
    service.client().rank(make_request("rank 1"))
    rounds = service.stats()["rounds"]
    with pytest.raises(ErrorResponseException) as error:
        service.client().rank(make())
    assert error.value.response.status_code == status
    assert error.value.error.error.code == code
    assert error.value.error.error.message
    assert "request_id" not in error.value.error.error.message
    assert target is None or error.value.error.error.target == target
    assert service.stats()["rounds"] == rounds


def test_unknown_events_wrong_values_and_keys_are_refused(service: Service) -> None:
    client = service.client()
    client.rank(make_request("known"))
    wrong: list[tuple[Any, int, str]] = [
        (lambda: client.events.reward("never ranked", 1.0), 404, "ResourceNotFound"),
        (lambda: client.events.activate("never ranked"), 404, "ResourceNotFound"),
        (lambda: client.events.reward("known", -1.0), 400, "BadRequest"),
        (lambda: service.client(key="wrong").rank(make_request()), 401, "Unauthorized"),
        (lambda: service.client("/v1/bandits/other").rank(make_request()), 403, "Forbidden"),
        (lambda: service.client("/v1/bandits/none", service.admin).rank(make_request()), 404, "ResourceNotFound"),
    ]
    for call, status, code in wrong:
        with pytest.raises(HttpOperationError) as error:
            call()
        assert error.value.response.status_code == status
        assert error.value.response.json()["error"]["code"] == code
    key = {"ocp-apim-subscription-key": service.key}
    ours = service.server.http.post("/v1/bandits/meals/decisions", json={"actions": []}, headers=key)
    assert ours.status_code == 401  # Personalizer's header opens its own paths alone


@pytest.mark.parametrize(
    "path", ["", "/", "/nothing", "/events/e/nothing", "/configurations/policy", "/events//reward"]
)
@pytest.mark.parametrize("bandit", ["", "/v1/bandits/meals"])
def test_an_address_that_is_not_there_has_an_error_in_its_shape(service: Service, path: str, bandit: str) -> None:
    answer = service.server.http.post(f"{bandit}/personalizer/v1.0{path}", json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "ResourceNotFound")
    ours = service.server.http.post("/v1/personalizer/v1.0/rank", json={})
    assert (ours.status_code, ours.json()["error"]["code"]) == (404, "not_found")


def test_a_reward_is_a_share_of_the_scale(service: Service) -> None:
    spec = {"dim": 16, "window": "30 min", "reward": {"scale": 200, "unit": "EUR"}}
    service.call("PUT", "/v1/bandits/money", spec)
    client = service.client("/v1/bandits/money", service.admin)
    for event, value in (("a", 0.75), ("b", 1.0)):
        client.rank(make_request(event))
        client.events.reward(event, value)
    stats = service.stats("money")
    assert (stats["value"], stats["capped"]) == (350.0, 0)
