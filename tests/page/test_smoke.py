"""The page opens in real Chromium and shows the engine's numbers; all else of it is slower."""

from __future__ import annotations

from featurestep import predict
from featurestep.page import words
from featurestep.page.state import PageState

from .explorer import PANELS, Explorer

QUICK = "n=500&readout=rademacher"  # its parts take little time, also on a busy machine


def test_a_person_sees_a_meaningful_picture(explorer: Explorer) -> None:
    explorer.open(QUICK)
    assert "spike" in explorer.text("words")
    found = predict(PageState.from_query(QUICK).problem)
    assert explorer.text("value-test_error") == words.number(found.test_error)
    assert explorer.text("value-train_loss") == words.number(found.train_loss)
    assert explorer.text("value-alignment") == f"{found.alignment:.3f}"
    for panel in PANELS:
        assert explorer.page.locator(f"#graph-{panel} .main-svg").first.is_visible()
    assert explorer.text("message") == ""
