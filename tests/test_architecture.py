"""The house rules that a machine can check: who imports whom, and what loads at import."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import featurestep
from docs.tools.architecture import SOURCE, imported, nodes


def files(room: str) -> list[Path]:
    return sorted((SOURCE / room).rglob("*.py"))


# Every room, in the order in which data flows: each imports only rooms to its left.
ROOMS = {
    "conventions": {"core", "functions"},
    "core": {"functions", "conventions"},  # a problem resolves its functions by name
    "functions": {"core"},
    "theory": {"core", "functions"},
    "simulation": {"core", "functions"},
    "meeting": {"core", "functions", "theory", "simulation"},
    "processes": {"core"},
    "sweeps": {"core", "conventions", "functions", "theory", "simulation", "meeting", "processes"},
    "plots": {"core", "functions", "theory", "simulation", "meeting", "sweeps"},
    "estimators": {"core", "functions", "theory", "simulation", "plots"},
}
FOUNDATIONS = {"types", "errors", "checks", "threads"}
EDGES = {"bench", "figures", "studies", "demo", "cli", "page"}


def rooms_of(path: Path) -> set[str]:
    return {module.split(".")[0] for module in imported(path)} - {""}


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_nothing_to_their_right(room: str) -> None:
    for path in [*files(room), *SOURCE.glob(f"{room}.py")]:
        wrong = rooms_of(path) - ROOMS[room] - {room}
        assert not wrong, f"{path.relative_to(SOURCE)} imports {wrong}"


def test_simulation_is_imported_by_its_front() -> None:
    for path in SOURCE.rglob("*.py"):
        if "simulation" not in path.relative_to(SOURCE).parts[:1]:
            inside = {m for m in imported(path) if m.startswith("simulation.")}
            assert not inside, f"{path.relative_to(SOURCE)} imports {inside}"


def test_functions_need_only_the_foundations_of_core() -> None:
    for path in [*files("functions"), *(SOURCE / "core" / f"{name}.py" for name in FOUNDATIONS)]:
        asked = {m.split(".")[1] for m in imported(path) if m.startswith("core.")}
        assert asked <= FOUNDATIONS, f"{path.relative_to(SOURCE)} imports {asked - FOUNDATIONS}"


def test_class_names_have_one_meaning() -> None:
    homes: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        whole = nodes(path)[0]
        assert isinstance(whole, ast.Module)
        for node in whole.body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(str(path.relative_to(SOURCE)))
    assert homes["Problem"] == {"core/problem.py"}
    shared = {name: at for name, at in homes.items() if len(at) > 1}
    assert not shared, shared


def test_only_the_command_line_knows_the_command_line() -> None:
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE)
        if inside.parts[0] != "cli" and inside.name != "__main__.py":
            assert "cli" not in rooms_of(path), inside


def test_every_room_has_its_place() -> None:
    found = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert found - {"__init__", "__main__", "__pycache__", "py.typed"} == {*ROOMS, *EDGES}


def test_no_room_is_named_like_a_verb() -> None:
    rooms = {path.stem for path in SOURCE.iterdir()}
    assert not rooms & set(featurestep.__all__)


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
        calls = [n for n in nodes(path) if isinstance(n, ast.Call)]
        names = {c.func.id for c in calls if isinstance(c.func, ast.Name)}
        assert not names & {"eval", "exec"}, path


def test_every_public_name_has_its_room_and_is_found_there() -> None:
    typed = ast.parse((SOURCE / "__init__.py").read_text()).body
    (block,) = [node for node in typed if isinstance(node, ast.If)]  # what type checkers read
    imported = [name for node in block.body for name in node.names]
    assert all(name.asname == name.name for name in imported)  # exported in their eyes
    assert sorted(name.name for name in imported) == featurestep.__all__
    for name, room in featurestep._HOME.items():
        assert getattr(featurestep, name) is getattr(import_module(f"featurestep.{room}"), name)
    assert set(featurestep.__all__) <= set(dir(featurestep))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = featurestep.nothing


def test_the_page_is_served_without_the_engine() -> None:
    """Its workers import it, so that no browser waits for that; figures are drawn without it."""
    script = (
        "import sys\n"
        "from featurestep.page import server, views\n"
        "from featurestep.page.state import PageState\n"
        "missing = {'spectrum': ValueError('none'), 'simulated_spectrum': None}\n"
        "views.main_view(PageState(), {}), views.spectrum_view(PageState(), missing)\n"
        "rooms = ('theory', 'simulation', 'plots', 'meeting', 'sweeps')\n"
        "assert not [m for m in sys.modules if m.startswith('featurestep.')"
        " and m.split('.')[1] in rooms]"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_importing_the_package_imports_none_of_its_rooms() -> None:
    script = (
        "import sys, featurestep\n"
        "assert not [m for m in sys.modules if m.startswith('featurestep.')]\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_figures_and_studies_load_nothing_until_they_are_asked() -> None:
    script = (
        "import sys, featurestep.figures, featurestep.studies\n"
        "rooms = ('theory', 'simulation', 'plots', 'meeting', 'sweeps', 'figures', 'studies')\n"
        "assert not [m for m in sys.modules if m.startswith('featurestep.') and '.' in m[12:]"
        " and m.split('.')[1] in rooms]\n"
        "assert not {'featurestep.theory', 'featurestep.simulation', 'matplotlib'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_notes_on_validity_have_one_home() -> None:
    """What admits an error is said in one module; a setting says where it leaves the theory."""
    homes = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Note"
    }
    assert homes == {"theory/validity.py", "simulation/setting.py"}
