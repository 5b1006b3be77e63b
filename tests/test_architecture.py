"""The house rules that a machine can check: who imports whom, and what loads at import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "featurestep"


def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports, as dotted names below the package."""
    package = path.relative_to(SOURCE).with_suffix("").parts[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            parents = package[: len(package) - (node.level - 1)]
            base = ".".join([*parents, *([node.module] if node.module else [])])
            found.add(base)
            if not node.module:
                found.update(".".join([*parents, alias.name]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("featurestep"):
            found.add((node.module or "").removeprefix("featurestep").lstrip("."))
        elif isinstance(node, ast.Import):
            found.update(
                a.name.removeprefix("featurestep.") for a in node.names if "featurestep" in a.name
            )
    return found


def files(room: str) -> list[Path]:
    return sorted((SOURCE / room).rglob("*.py"))


@pytest.mark.parametrize(
    ("room", "forbidden"), [("theory", "simulation"), ("simulation", "theory")]
)
def test_theory_and_simulation_never_import_each_other(room: str, forbidden: str) -> None:
    for path in files(room):
        wrong = {m for m in imported(path) if m.split(".")[0] == forbidden}
        assert not wrong, f"{path.name} imports {wrong}"


EDGES = {
    "cli",
    "demo",
    "plots",
    "plot_style",
    "compare",
    "phase",
    "page",
    "estimator",
    "sweep",
    "figures",
}


@pytest.mark.parametrize("room", ["theory", "simulation", "nonlinearity"])
def test_rooms_import_nothing_to_their_right(room: str) -> None:
    for path in files(room):
        wrong = {m for m in imported(path) if m.split(".")[0].split("_")[0] in EDGES}
        assert not wrong, f"{path.name} imports {wrong}"


@pytest.mark.parametrize(
    "module",
    ["errors", "quadrature", "checks", "formula", "readout", "regime", "spiked", "problem"],
)
def test_the_problem_knows_neither_theory_nor_simulation(module: str) -> None:
    rooms = {m.split(".")[0] for m in imported(SOURCE / f"{module}.py")}
    assert not rooms & {"theory", "simulation"}


def test_heavy_packages_are_not_loaded_at_import() -> None:
    code = (
        "import sys, featurestep; "
        "print([m for m in ('xarray', 'matplotlib', 'pandas', 'torch', 'dask', 'sklearn', 'rich', "
        "'click', 'scipy.optimize', 'scipy.stats') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_no_function_is_evaluated_from_text() -> None:
    for path in SOURCE.rglob("*.py"):
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        names = {c.func.id for c in calls if isinstance(c.func, ast.Name)}
        assert not names & {"eval", "exec"}, path
