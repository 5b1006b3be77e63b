"""The page as a person uses it: its controls by name, and what it shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from featurestep.page.state import PageState

PANELS = ("spectrum", "errors", "learned", "degrees")
WAIT = 60_000  # ms: a busy machine is slow, not wrong


def written(figure: dict[str, Any]) -> list[str]:
    """Everything that a figure says within its axes and around them."""
    notes = [note["text"] for note in figure["layout"]["annotations"]]
    return [*notes, *(text for trace in figure["data"] for text in trace.get("text", ()) if text)]


class Explorer:
    """One tab."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints: list[str] = []
        page.set_default_timeout(WAIT)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._request)
        page.on("response", self._response)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"off-host: {request.url}")

    def _response(self, response: Any) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.status} {response.url}")

    def open(self, query: str = "") -> Explorer:
        """Load the page and wait until everything is drawn."""
        self.page.goto(self.address + (f"?{query}" if query else ""))
        self.settled()
        return self

    def settled(self) -> None:
        """Wait until both lanes are answered in full and drawn, with nothing more on its way."""
        self.page.evaluate("() => new Promise((done) => setTimeout(done, 50))")
        self.page.wait_for_selector(
            "html[data-answered]:not([data-main=busy])[data-spectrum=idle][data-fine=yes] "
            "#graph-spectrum .plot-container",
            state="attached",
        )
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Do something that asks a question, and wait until its answer is drawn."""
        before = self.page.get_attribute("html", "data-answered")
        yield
        self.page.wait_for_selector(f"html:not([data-answered='{before}'])", state="attached")
        self.settled()

    def press(self, name: str, key: str = "ArrowRight", times: int = 1) -> None:
        """Move a slider by the keyboard."""
        self.page.focus(f"#slide-{name}")
        with self.answered():
            for _ in range(times):
                self.page.keyboard.press(key)

    def type(self, name: str, text: str, prefix: str = "box") -> None:
        """Write into a number's box, or the formula's."""
        with self.answered():
            self.page.fill(f"#{prefix}-{name}", text)
            self.page.keyboard.press("Enter")

    def choose(self, name: str, option: str) -> None:
        """Pick from a list."""
        with self.answered():
            self.page.select_option(f"#pick-{name}", label=option)

    def tick(self, name: str, label: str) -> None:
        """Choose a radio button."""
        with self.answered():
            self.page.locator(f"#row-{name}").get_by_text(label, exact=True).click()

    def flip(self, name: str) -> None:
        """Turn a switch."""
        with self.answered():
            self.page.click(f"#pick-{name}")

    def click(self, name: str) -> None:
        """Press a button that changes the view."""
        with self.answered():
            self.page.click(f"#{name}")

    def text(self, name: str) -> str:
        """What an element says."""
        return str(self.page.inner_text(f"#{name}"))

    def data(self, panel: str) -> list[Any]:
        """The traces of a panel, as Plotly has them."""
        text = self.page.evaluate(
            f"() => JSON.stringify(document.getElementById('graph-{panel}').data)"
        )
        return list(json.loads(text))

    def drawn(self) -> dict[str, str]:
        """All panels' numbers, colours left out, to see which change."""
        return {
            panel: json.dumps([{k: t.get(k) for k in ("x", "y", "name")} for t in self.data(panel)])
            for panel in PANELS
        }

    @property
    def state(self) -> PageState:
        """The state that the address carries, once it has caught up."""
        self.page.wait_for_timeout(300)
        return PageState.from_query(urlsplit(self.page.url).query)

    def download(self, button: str, folder: Path) -> str:
        """The text of a file that a button saves."""
        with self.page.expect_download() as started:
            self.page.click(f"#{button}")
        path = folder / started.value.suggested_filename
        started.value.save_as(path)
        return path.read_text(encoding="utf-8")
