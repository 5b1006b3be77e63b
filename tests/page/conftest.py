"""A served page, and a real browser to open it in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from featurestep.page import views as module
from featurestep.page.views import Views

from .explorer import Explorer

# On a busy machine what takes a second takes many: slowness is no fault that a test may find.
PATIENT = (
    "from featurestep.page import views; views.DEADLINE = views.LONG_DEADLINE = 120.0; "
    "from featurestep.cli import main; main()"
)
COMMAND = [sys.executable, "-c", PATIENT, "explore", "--port", "0", "--no-browser"]


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a page served by a process of its own, as a user starts it."""
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None
    yield found.group()
    process.terminate()
    assert process.wait(timeout=60) == 0
    process.stdout.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium; where it is missing, a skip that says so, and a failure in CI."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        missing = "needs Chromium: apt-get install chromium (make test does it where it may)"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        launched = driver.chromium.launch(executable_path=chromium, args=flags)
        yield launched
        launched.close()


@pytest.fixture
def explorer(browser: Any, address: str) -> Iterator[Explorer]:
    """A fresh tab on the page; what its console or the network complained about fails the test."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 860}, accept_downloads=True, color_scheme="light"
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab = Explorer(context.new_page(), address)
    yield tab
    context.close()
    assert tab.complaints == []


@pytest.fixture(scope="session")
def views() -> Iterator[Views]:
    """The engine behind the page, in this process."""
    made = Views()
    with pytest.MonkeyPatch.context() as patched:  # a busy machine is slow, not wrong
        patched.setattr(module, "DEADLINE", 300.0)
        patched.setattr(module, "LONG_DEADLINE", 300.0)
        yield made
    made.close()
