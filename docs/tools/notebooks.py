"""Notebooks as pages of the site, by their stored outputs."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any


def page_of(path: Path) -> dict[str, str | bytes]:
    """The page of a notebook and the images it shows, by their names below `generated`."""
    cells = json.loads(path.read_text())["cells"]
    text: list[str] = []
    files: dict[str, str | bytes] = {}
    for number, cell in enumerate(cells):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            text += [source, ""]
            continue
        text += ["```python", source, "```", ""]
        for output in cell["outputs"]:
            name = f"{path.stem}-{number}.png"
            lines, image = _shown(output, name)
            text += lines
            if image is not None:
                files[f"notebooks/{name}"] = image
    text += [
        f"*This page is the notebook {{download}}`{path.name} <../../notebooks/{path.name}>`.*"
    ]
    return {f"notebooks/{path.stem}.md": "\n".join(text) + "\n", **files}


def _shown(output: dict[str, Any], name: str) -> tuple[list[str], bytes | None]:
    if output["output_type"] == "stream":
        return ["```text", "".join(output["text"]).rstrip(), "```", ""], None
    data = output.get("data", {})
    if "image/png" in data:
        return [f"![figure]({name})", ""], base64.b64decode(data["image/png"])
    if "text/plain" in data:
        return ["```text", "".join(data["text/plain"]).rstrip(), "```", ""], None
    return [], None
