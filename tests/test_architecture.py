"""The house rules that a machine can check: who imports whom, and what loads at import."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import featurestep

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


def test_heavy_packages_are_not_loaded_with_the_package() -> None:
    code = (
        "import sys, featurestep; [getattr(featurestep, name) for name in featurestep.__all__]; "
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


def test_every_public_name_has_its_room_and_is_found_there() -> None:
    assert sorted(featurestep._HOME) == sorted(featurestep.__all__)
    for name, room in featurestep._HOME.items():
        assert getattr(featurestep, name) is getattr(import_module(f"featurestep.{room}"), name)
    assert set(featurestep.__all__) <= set(dir(featurestep))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = featurestep.nothing


@pytest.mark.parametrize(
    "first", ["import featurestep.sweep.verb, featurestep.compare", "import featurestep", ""]
)
def test_a_verb_wins_over_the_room_of_its_name(first: str) -> None:
    script = f"{first}\nfrom featurestep import compare, sweep\nimport featurestep\n" + (
        "assert callable(compare) and callable(sweep)\n"
        "assert featurestep.compare is compare and featurestep.sweep is sweep\n"
        "import featurestep.sweep.store, featurestep.theory.spectrum.solve\n"
        "assert featurestep.sweep is sweep and callable(featurestep.spectrum)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_importing_the_package_imports_none_of_its_rooms() -> None:
    script = (
        "import sys, featurestep\n"
        "assert not [m for m in sys.modules if m.startswith('featurestep.')]\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
