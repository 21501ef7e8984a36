"""Draws docs/pictures/page.png, the page of a seeded shop, in Chromium: `python scripts/page_picture.py`."""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, "tests/support")

from seeded_shop import open_shop

from latecomer.pictures import PNG_SCALE
from latecomer.service.page.layout import write_report

NOW = 1_780_000_000
"""The last day of the shop: the same picture every time."""

with tempfile.TemporaryDirectory() as folder:
    with open_shop(Path(folder) / "shop.db", 6000, now=NOW) as store:
        page_file = Path(folder) / "report.html"
        page_file.write_text(write_report(store.bandit_report("offers")), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": 1000, "height": 1180}, color_scheme="light", device_scale_factor=PNG_SCALE
        )
        page.goto(page_file.as_uri())
        page.screenshot(path="docs/pictures/page.png")
        browser.close()
