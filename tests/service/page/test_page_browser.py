"""The page in a real browser: Chromium as Debian packs it, or the one that LATECOMER_CHROMIUM names."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from seeded_shop import open_shop
from servers import Server, run_server

from latecomer.service.http.keys import KeyFile
from latecomer.service.page.layout import TITLES, write_report

sync_api = pytest.importorskip("playwright.sync_api", reason="NO BROWSER TEST: playwright is not installed")
CHROMIUM = os.environ.get("LATECOMER_CHROMIUM") or shutil.which("chromium") or ""
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="NO BROWSER TEST: `apt-get install chromium` to run it")
ROUNDS = 240
SERIOUS = ("serious", "critical")
DEFAULT_WIDTH = 1280
"""Of a page whose size nobody gives."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("shop") / "a.db"
    open_shop(path, ROUNDS).close()
    with run_server(path) as server:
        server.http.put("/v1/bandits/empty", json={"dim": 2, "window": 100})
        server.http.put("/v1/bandits/rows", json={"dim": 2, "window": 100, "policy": "OTFLinTS", "log_offers": False})
        for _ in range(3):
            server.http.post("/v1/bandits/rows/decisions", json={"actions": [[0.5, 0.0], [0.0, 0.5]]})
        yield server


class Page:
    """A page, with the errors of its console and its requests to other hosts."""

    def __init__(self, browser: Any, url: str, **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.page.on("console", lambda line: self.problems.append(line.text) if line.type == "error" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda sent: None if sent.url.startswith(url) else self.problems.append(sent.url))

    def check(self, width: int) -> None:
        """Check that the page fits its width, with everything unfolded, and had no problem."""
        self.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width
        assert self.problems == []

    def check_accessibility(self) -> None:
        """Check that axe has no serious finding on what is unfolded."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="NO AXE TEST: it is not installed")
        found = axe.Axe().run(self.page).response["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] in SERIOUS] == []


def find_path(server: Server, name: str) -> str:
    if name != "decision":
        return {"list": "/", "data": "/?bandit=offers", "empty": "/?bandit=empty", "rows": "/?bandit=rows"}[name]
    latest = server.http.get("/v1/bandits/offers/report").json()["recent"][0]["decision_id"]
    return f"/?bandit=offers&decision={latest}"


NARROW, WIDE = (360, "dark"), (1280, "light")


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("data", *NARROW),
        ("list", *WIDE),
        *(
            pytest.param(name, *shape, marks=pytest.mark.soak)
            for name in ("data", "decision", "rows", "empty", "list")
            for shape in (NARROW, WIDE)
            if (name, shape) not in {("data", NARROW), ("list", WIDE)}
        ),
    ],
)
def test_page_loads_fits_and_is_accessible(browser: Any, server: Server, name: str, width: int, scheme: str) -> None:
    shown = Page(browser, server.url, viewport={"width": width, "height": 800}, color_scheme=scheme)
    shown.page.goto(server.url + find_path(server, name))
    shown.page.wait_for_selector("#content h2")
    dark = shown.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    shown.check(width)
    shown.check_accessibility()
    shown.context.close()


def test_every_panel_has_data_or_says_what_to_do(browser: Any, server: Server) -> None:
    shown = Page(browser, server.url)
    shown.page.goto(f"{server.url}/?bandit=offers")
    for key in TITLES:
        shown.page.wait_for_selector(f"#{key} :is(table, svg, dl)")
    assert shown.page.locator("#content .empty").count() == 0
    shown.page.goto(f"{server.url}/?bandit=rows")
    shown.page.wait_for_selector("#verdicts")
    empty = shown.page.evaluate("[...document.querySelectorAll('section:has(.empty)')].map((part) => part.id)")
    assert empty == ["rates", "lift", "choices", "segments", "delays", "exploration"]
    commands = shown.page.locator("#content pre").all_inner_texts()
    assert [f" {server.url}/v1/bandits/rows" in command for command in commands] == [True, True]
    shown.check(DEFAULT_WIDTH)
    shown.context.close()


def test_page_follows_new_events_within_two_seconds_and_keeps_what_is_open(browser: Any, server: Server) -> None:
    shown = Page(browser, server.url)
    page = shown.page
    page.goto(f"{server.url}/?bandit=offers")
    page.wait_for_selector("#delays-table")
    page.focus("#delays-table-summary")
    page.keyboard.press("Enter")
    body = {"context": {"visitor": "new", "age": 30}, "actions": [{"id": "coupon", "features": {"offer": "coupon"}}]}
    taken: list[float] = []
    while len(taken) < 5 and min(taken, default=9.0) >= 2.0:  # the best: others use this machine too
        page.wait_for_timeout(600 * len(taken))  # a page is kept for a while, and an event may come at any time of it
        before = server.http.get("/v1/bandits/offers/report").json()["decisions"]
        answer = server.http.post("/v1/bandits/offers/decisions", json=body).json()
        begin = time.monotonic()
        page.wait_for_selector(f".cards b:text-is('{before + 1:,}')", timeout=20_000)
        taken.append(time.monotonic() - begin)
    assert min(taken) < 2.0
    server.http.post("/v1/bandits/offers/conversions", json={"decision_id": answer["decision_id"]})
    page.wait_for_selector("#recent tbody tr:first-child .fate.converted", timeout=20_000)
    assert page.evaluate("document.getElementById('delays-table').open")
    assert page.evaluate("document.activeElement.id") == "delays-table-summary"
    assert shown.problems == []
    shown.context.close()


def test_why_this_one_by_keyboard_and_by_link(browser: Any, server: Server) -> None:
    shown = Page(browser, server.url)
    page = shown.page
    latest = server.http.get("/v1/bandits/offers/report").json()["recent"][1]
    page.goto(f"{server.url}/?bandit=offers")
    page.wait_for_selector("#decision")
    page.focus("#decision")
    page.keyboard.type(latest["decision_id"])
    page.keyboard.press("Enter")
    page.wait_for_selector("h2:has-text('Why this one?')")
    assert latest["decision_id"] in page.inner_text("#content")
    shown.check(DEFAULT_WIDTH)
    page.click("#back")
    page.click(f"#why-{latest['round']}")
    page.wait_for_selector("h2:has-text('Why this one?')")
    page.goto(f"{server.url}/?bandit=offers&decision=nonsense")
    page.wait_for_selector("#content:has-text('this bandit has not given it')")
    page.click("#content a")  # the way back
    page.wait_for_selector("#decision")
    shown.context.close()


@pytest.mark.parametrize("with_axe", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_report_as_one_file_needs_nothing_and_fits(
    browser: Any, server: Server, tmp_path: Path, with_axe: bool
) -> None:
    path = tmp_path / "report.html"
    with server.client() as client:
        path.write_text(write_report(client.report("offers")), encoding="utf-8")
    shown = Page(browser, "file:", viewport={"width": 800, "height": 800})
    shown.page.goto(path.as_uri())
    assert shown.page.locator("section").count() == len(TITLES)
    shown.check(800)
    if with_axe:  # the sections are those of the page, which axe sees in every run
        shown.check_accessibility()
    shown.context.close()


def test_log_in_and_out(browser: Any, tmp_path: Path) -> None:
    key = KeyFile(tmp_path / "a.db.keys").add(scopes=["read"])[0]
    with run_server(tmp_path / "a.db") as server:
        page = browser.new_page()
        page.goto(server.url)
        page.wait_for_selector("#login:not([hidden])")
        assert page.evaluate("document.activeElement.id") == "key"
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("#status:has-text('not valid')")
        page.fill("#key", key)
        page.keyboard.press("Enter")
        page.wait_for_selector("text=No bandits yet")
        page.reload()
        page.wait_for_selector("text=No bandits yet")  # the key stays in the tab
        page.click("#logout")
        page.wait_for_selector("#login:not([hidden])")
        assert page.evaluate("sessionStorage.length") == 0
        assert page.context.cookies() == []
        page.close()
