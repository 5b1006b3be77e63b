"""The notebooks: small, stored with outputs, and they run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.tools.execute import NOTEBOOKS, executed
from docs.tools.notebooks import page_of

ALL = sorted(NOTEBOOKS.glob("*.ipynb"))


def test_there_are_three() -> None:
    assert [path.stem for path in ALL] == ["learning-rate", "phase-transition", "real-data"]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_they_are_small_and_have_outputs(path: Path) -> None:
    assert path.stat().st_size < 100_000
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert any("assert " in "".join(cell["source"]) for cell in cells)
    pages = page_of(path)
    assert any(name.endswith(".png") for name in pages)
    assert any(output["output_type"] == "stream" for cell in cells for output in cell["outputs"])


@pytest.mark.slow
@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_they_run(path: Path) -> None:
    """Cells assert what they claim; an error in a cell is raised."""
    pytest.importorskip("nbclient")
    assert json.loads(executed(path))["cells"]
