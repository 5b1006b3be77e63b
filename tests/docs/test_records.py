"""Speed tables: recorded with machine and command, and shown on the site as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import spectrum_bench
from docs.tools import generate


def test_a_table_is_recorded_with_its_machine_and_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setitem(command.TABLES, "sweep", lambda: print("1000 units  0.2 s"))
    command.main(["sweep"])
    assert not list(tmp_path.iterdir())
    command.main(["--record", "sweep"])
    machine, asked, _, table = (tmp_path / "sweep.txt").read_text().splitlines()
    assert "cores" in machine
    assert "load average" in machine
    assert asked == "python -m benchmarks sweep"
    assert table == "1000 units  0.2 s"


def test_spectra_of_random_problems_are_timed() -> None:
    (one,) = spectrum_bench.solved_at_random(2511, 1)
    assert one.law == "finite"
    assert one.answer == "resolved"
    assert one.seconds > 0.0


def test_an_unknown_table_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["swep"])
    assert "TABLE must be one of predict" in capsys.readouterr().err


def test_the_site_shows_recorded_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    assert generate.records_page() == ""
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (results / "sweep.txt").write_text("a machine\n")
    assert "## Sweeps\n\n```text\na machine\n```" in generate.records_page()
    assert set(generate.RECORDS) <= set(command.TABLES)
