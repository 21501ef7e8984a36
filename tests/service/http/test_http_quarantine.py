"""A server whose store has a damaged bandit: the others are served, and errors say which one is not."""

from pathlib import Path

from servers import error_of, run_server

from latecomer.service.bandit_spec import BanditSpec
from latecomer.service.http.keys import KeyFile
from latecomer.service.storage.schema import connect
from latecomer.service.store import Store

DAMAGED = "row 2 of chain 1 of the log is damaged: its checksum does not match"


def damaged_store(path: Path) -> None:
    with Store.open(path) as store:
        for name in ("shop", "news"):
            store.create(name, BanditSpec(dim=2, window="7d", policy="OTFLinUCB"))
            store.wait(store.decide(name, [[1.0, 0.0]])[1])
    connection = connect(path, write=True)
    connection.execute("UPDATE log SET checksum = zeroblob(16) WHERE key = (1 << 40) + 2")
    connection.execute("DELETE FROM snapshot")
    connection.close()


def test_a_damaged_bandit_is_quarantined_and_the_others_served(tmp_path: Path) -> None:
    store_path = tmp_path / "shop.db"
    damaged_store(store_path)
    with run_server(store_path) as server:
        http = server.http
        (said,) = server.logged("bandit quarantined, the others are served")
        assert (said["bandit"], said["level"], DAMAGED in said["why"]) == ("shop", "error", True)
        assert said["remedy"] == f"latecomer log verify {store_path}"
        ready = http.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "ready")
        assert DAMAGED in ready.json()["quarantined"]["shop"]
        page = http.get("/metrics").text
        assert 'latecomer_bandit_quarantined{bandit="shop"} 1.0' in page
        assert 'latecomer_bandit_quarantined{bandit="news"} 0.0' in page
        listed = {info["name"]: info["quarantined"] for info in http.get("/v1/bandits").json()["bandits"]}
        assert listed == {"shop": True, "news": False}

        answers = [
            http.get("/v1/bandits/shop"),
            http.get("/v1/bandits/shop/stats"),
            http.put("/v1/bandits/shop", json={"dim": 2, "window": "7d", "policy": "OTFLinUCB"}),
            http.post("/v1/bandits/shop/decisions", json={"actions": [[1.0, 0.0]]}),
            http.post("/v1/bandits/shop/conversions", json={"decision_id": "1-0"}),
        ]
        for answer in answers:
            assert answer.status_code == 503
            error = error_of(answer)
            assert error["code"] == "unavailable"
            assert DAMAGED in error["message"]
        assert http.post("/v1/bandits/news/decisions", json={"actions": [[1.0, 0.0]]}).json()["round"] == 2

        assert http.delete("/v1/bandits/shop").status_code == 400
        assert http.delete("/v1/bandits/shop?confirm=shop").json()["quarantined"] is True
        assert http.get("/v1/bandits/shop").status_code == 404
        assert http.get("/readyz").json() == {"status": "ready"}
        assert http.put("/v1/bandits/shop", json={"dim": 2, "window": 9, "policy": "OTFLinUCB"}).status_code == 201
    with Store.open(store_path) as store:
        assert store.quarantined == {}
        assert store.stats("news").rounds == 2


def test_a_key_for_another_bandit_is_not_told_which_is_damaged(tmp_path: Path) -> None:
    store_path = tmp_path / "a.db"
    damaged_store(store_path)
    file = KeyFile(Path(f"{store_path}.keys"))
    of_news, of_all = (file.add(scopes=("read",), bandits=bandits)[0] for bandits in (("news",), ("*",)))
    with run_server(store_path) as server:
        for key, is_named in ((of_news, False), (of_all, True)):
            for path in ("/v1/bandits/news/stats", "/v1/bandits/news/report", "/page/bandits/news", "/page/bandits"):
                answer = server.http.get(path, headers={"Authorization": f"Bearer {key}"})
                assert answer.status_code == 200
                assert "rows of the log are damaged, and these bandits are not served" in answer.text.lower()
                named = is_named and path == "/page/bandits"
                assert ("shop" in answer.text, DAMAGED in answer.text) == (named, named), path
