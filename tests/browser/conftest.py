"""A real browser, once for all tests of a file: its event loop must be gone before others run.
Where none is installed they are skipped."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser is installed; looked for {', '.join(NAMES)}")
    with sync_playwright() as playwright:
        # As root it cannot have a sandbox; it visits nothing but our own page.
        one = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield one
        one.close()
