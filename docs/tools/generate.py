"""Pages that are made from the code: the API reference, the commands, the notebooks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import featurestep
from featurestep import conventions, estimators

from .pages import DOCS, ROOT, fences

TARGET = DOCS / "generated"
EXAMPLES = DOCS / "api-examples.md"
_FOREIGN = (
    "set_fit_request, set_score_request, set_predict_request, set_transform_request, set_output"
)
CONVERTERS = ("ridge_from", "step_size_from", "rescaled")
RECORDS = {
    "predict": "Predictions",
    "covariance": "Inputs with a covariance",
    "reuse": "Predictions with rows of the step",
    "simulate": "Simulations",
    "spectrum": "Spectra",
    "sweep": "Sweeps",
    "page": "The live page",
}
_CHAPTERS = {  # of the reference, by where a name is defined
    "Problems": ("core.problem", "core.grid", "functions", "settings"),
    "Conventions": ("conventions",),
    "Predictions": ("theory",),
    "Simulations": ("simulation",),
    "Theory and simulation side by side": ("meeting",),
    "Sweeps": ("sweeps",),
    "Estimators": ("estimators",),
    "What every answer has": ("core.results", "core.spiked"),
    "Errors": (),
}

_API_INTRODUCTION = (
    "Every public name. The examples are one program from top to bottom, run when the site is "
    "built: `problem` is that of the first."
)


def public_names() -> dict[str, Any]:
    """Every public name with its module, and what it stands for."""
    found = {f"featurestep.{name}": getattr(featurestep, name) for name in featurestep.__all__}
    for module, names in ((conventions, CONVERTERS), (estimators, estimators.__all__)):
        found.update({f"{module.__name__}.{name}": getattr(module, name) for name in names})
    return found


def write_all() -> None:
    """Write every generated page, and only where something has changed: builds stay quick."""
    for name, text in {
        "api.md": api_page(),
        "commands.md": commands_page(),
        "records.md": records_page(),
        **notebook_pages(),
    }.items():
        _write(TARGET / name, text)


def _write(path: Path, text: str | bytes) -> None:
    content = text.encode() if isinstance(text, str) else text
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)


def chapter_of(value: Any) -> str:
    """The chapter of the reference that a public name belongs to."""
    if isinstance(value, type) and issubclass(value, Exception):
        return "Errors"
    home = value.__module__.removeprefix("featurestep.") + "."
    for title, rooms in _CHAPTERS.items():
        if any(home.startswith(f"{room}.") for room in rooms):
            return title
    return "Further names"


def api_examples() -> dict[str, str]:
    """The section of each public name in `api-examples.md`, as it stands there."""
    parts = re.split(r"^## (.+)$", EXAMPLES.read_text(), flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    return {name: text for names, text in sections.items() for name in names.split(", ")}


def has_example(section: str) -> bool:
    """Whether a section runs something."""
    return any(fence.language == "python" for fence in fences(section))


def api_page() -> str:
    """Every public name with its docstring and an example, in the order of the examples.

    They are one program; one that serves several names is shown with the first.
    """
    shown = api_examples()
    place = {name: index for index, name in enumerate(shown)}
    first: dict[str, str] = {}
    chapters: dict[str, list[str]] = {title: [] for title in [*_CHAPTERS, "Further names"]}
    named = {path.rpartition(".")[2]: (path, value) for path, value in public_names().items()}
    for name in sorted(named, key=lambda name: place.get(name, len(place))):
        path, value = named[name]
        example = shown.get(name, "")
        if first.setdefault(example, name) != name:
            example = (
                f"Example: with [{first[example]}](#{first[example].lower().replace('_', '-')})."
            )
        chapters[chapter_of(value)].append(_entry(path, value, example))
    text = ["# API reference", "", _API_INTRODUCTION, ""]
    for title, entries in chapters.items():
        if entries:
            text += [f"## {title}", "", *entries]
    return "\n".join(text)


def _entry(path: str, value: Any, example: str) -> str:
    kind = "autoclass" if isinstance(value, type) else "autofunction"
    members = (
        []
        if kind == "autofunction" or _is_error(value)
        else [":members:", f":exclude-members: {_FOREIGN}"]
    )
    directive = ["```{eval-rst}", f".. {kind}:: {path}", *_indented(members), "```"]
    name = path.rpartition(".")[2]
    return "\n".join([f"### {name}", "", *directive, "", example.strip(), ""])


def _indented(lines: list[str]) -> list[str]:
    return [f"   {line}" for line in lines]


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def commands_page() -> str:
    """The help of every command, as the terminal prints it."""
    import click
    from click.testing import CliRunner

    from featurestep.cli import main

    context = click.Context(main)
    text = ["# Commands", "", "What `featurestep COMMAND --help` prints.", ""]
    paths: list[tuple[str, ...]] = []
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        below = sorted(command.commands) if isinstance(command, click.Group) else []
        paths += [(name,), *((name, inner) for inner in below)]
    for path in paths:
        help_text = CliRunner().invoke(main, [*path, "--help"]).stdout
        text += [f"## {' '.join(path)}", "", "```text", help_text.rstrip(), "```", ""]
    return "\n".join(text)


def records_page() -> str:
    """The recorded speed tables, as `python -m benchmarks --record TABLE` has written them."""
    found = {name: ROOT / "benchmarks" / "results" / f"{name}.txt" for name in RECORDS}
    text = []
    for name, path in found.items():
        if path.exists():
            text += [f"## {RECORDS[name]}", "", "```text", path.read_text().rstrip(), "```", ""]
    return "\n".join(text)


def notebook_pages() -> dict[str, str | bytes]:
    """Each notebook as a page: prose, code, printed output, figures."""
    from .notebooks import page_of

    found: dict[str, str | bytes] = {}
    for path in sorted((DOCS / "notebooks").glob("*.ipynb")):
        found.update(page_of(path))
    return found


def plain_docstring(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Keep reStructuredText from reading λ_ or |κ| as links."""
    if what == "class" and value.__doc__ and value.__doc__.startswith(f"{value.__name__}("):
        lines[:] = []  # the signature that dataclasses write where there is no docstring
    for i, line in enumerate(lines):
        lines[i] = re.sub(r"(?<=\w)_(?=[\s,;.)]|$)", r"\\_", line).replace("|", r"\|")
