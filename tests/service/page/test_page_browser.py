"""The page in a real browser: Chromium as Debian packs it, or the one that LATECOMER_CHROMIUM names."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seeded_shop import open_shop
from servers import Server, run_server

from latecomer.service.http.keys import KeyFile

sync_api = pytest.importorskip("playwright.sync_api", reason="NO BROWSER TEST: playwright is not installed")
CHROMIUM = os.environ.get("LATECOMER_CHROMIUM") or shutil.which("chromium") or ""
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="NO BROWSER TEST: `apt-get install chromium` to run it")
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("shop") / "a.db"
    open_shop(path, 600).close()
    with run_server(path) as server:
        server.http.put("/v1/bandits/empty", json={"dim": 2, "window": 100})
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("path", ["/", "/?bandit=offers", "/?bandit=empty"])
def test_page_loads_fits_and_is_accessible(browser: Any, server: Server, path: str, width: int, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="NO AXE TEST: it is not installed")
    shown = Page(browser, server.url, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = shown.page
    page.goto(server.url + path)
    page.wait_for_selector("#content h2")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    found = axe.Axe().run(page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] in SERIOUS] == []
    assert shown.problems == []
    shown.context.close()


def test_page_follows_new_events_and_keeps_what_is_open(browser: Any, server: Server) -> None:
    shown = Page(browser, server.url)
    page = shown.page
    page.goto(f"{server.url}/?bandit=offers")
    page.wait_for_selector("#choices-table")
    page.focus("#choices-table-summary")
    page.keyboard.press("Enter")
    before = server.http.get("/v1/bandits/offers/report").json()["decisions"]
    server.http.post("/v1/bandits/offers/decisions", json={"actions": np.eye(4).tolist()})
    page.wait_for_selector(f".cards b:text-is('{before + 1:,}')", timeout=10_000)
    assert page.evaluate("document.getElementById('choices-table').open")
    assert page.evaluate("document.activeElement.id") == "choices-table-summary"
    assert shown.problems == []
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
