"""`featurestep figure`: the list, refusals, one small figure end to end, and every quick one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import xarray
from click.testing import CliRunner

from featurestep import figures, simulate
from featurestep.cli import main
from featurestep.figures import FIGURES, FigureClaimFailed, base, double_descent

from .falsified import FALSE, TRUE, changed


def run(*arguments):
    return CliRunner().invoke(main, ["figure", *arguments])


@pytest.fixture
def made_up(monkeypatch):
    """Puts data of our own behind a figure."""

    def put(name, data):
        instead = replace(FIGURES[name], compute=lambda quick, progress: data)
        monkeypatch.setitem(figures.FIGURES, name, instead)

    return put


def test_the_list_names_every_figure():
    result = run("--list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(FIGURES)
    assert all(len(line.split()) > 2 for line in lines)


@pytest.mark.parametrize("arguments", [("spectra",), (), ("weights", "--output", "file")])
def test_bad_requests_are_one_line(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("kept")
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_small_figure_end_to_end(tmp_path, monkeypatch):
    def smaller(grid, *, seeds, variants, progress):
        return simulate(grid, seeds=3, n_test=500, variants=variants, progress=progress)

    told = []
    monkeypatch.setattr(base, "simulate", smaller)
    monkeypatch.setattr(double_descent, "RATIOS", (0.25, 1.0, 4.0))
    data = double_descent.compute(True, told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)
    instead = replace(FIGURES["double-descent"], compute=lambda quick, progress: data)
    monkeypatch.setitem(figures.FIGURES, "double-descent", instead)
    folder = tmp_path / "new" / "folder"
    result = run("double-descent", "--output", str(folder))
    assert result.exit_code == 0, result.output
    assert "the peak is at N/n = 1.000 predicted, 1 simulated" in result.stdout
    names = [f"double-descent.{kind}" for kind in ("nc", "png", "svg")]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert (folder / names[1]).read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / names[2]).read_bytes()
    xarray.testing.assert_allclose(xarray.load_dataset(folder / names[0], engine="scipy"), data)


def test_a_claim_that_fails_is_told_and_leaves_the_files(tmp_path, made_up):
    name, variable, where, value, _ = FALSE[0]
    made_up(name, changed(TRUE[name](), variable, where, value))
    result = run(name, "--output", str(tmp_path))
    assert result.exit_code == 1
    assert "  FAILS: α = 0.29" in result.stdout
    assert "  holds: α = 0.15" in result.stdout
    assert result.stderr.startswith("error: figure spectrum contradicts its claim")
    assert len(result.stderr.splitlines()) == 1
    assert len(list(tmp_path.iterdir())) == 3


def test_all_goes_on_after_a_failure(tmp_path, made_up, monkeypatch):
    name, variable, where, value, _ = FALSE[0]
    few = [name, *(other for other in FIGURES if other != name)][:2]
    for other in tuple(FIGURES):
        if other not in few:
            monkeypatch.delitem(figures.FIGURES, other)
    for other in few[1:]:
        made_up(other, TRUE[other]())
    made_up(name, changed(TRUE[name](), variable, where, value))
    result = run("all", "--output", str(tmp_path))
    assert result.exit_code == 1
    assert len(list(tmp_path.iterdir())) == 3 * len(few)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_quick_figures_bear_out_their_claims(name):
    figure = FIGURES[name]
    data = figure.compute(True, lambda share: None)
    figure.draw(data)
    try:
        assert figure.check(data)
    except FigureClaimFailed as failure:
        pytest.fail(str(failure))
