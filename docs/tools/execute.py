"""Run the notebooks and keep their outputs: python -m docs.tools.execute [NOTEBOOK ...]."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .pages import DOCS, ROOT

NOTEBOOKS = DOCS / "notebooks"


def executed(path: Path) -> str:
    """The notebook with the outputs of today, as text; an error in a cell is raised."""
    import nbformat
    from nbclient import NotebookClient

    path_of_ours = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    around = {k: v for k, v in os.environ.items() if k != "MPLBACKEND"}  # it would hide figures
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, kernel_name="python3")
    client.execute(env={**around, "PYTHONPATH": path_of_ours})
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", []):
            output.get("metadata", {}).clear()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return str(nbformat.writes(notebook)) + "\n"


def main(arguments: list[str]) -> None:
    """Execute the notebooks named, or all."""
    for path in [Path(name) for name in arguments] or sorted(NOTEBOOKS.glob("*.ipynb")):
        path.write_text(executed(path))
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
