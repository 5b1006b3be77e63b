"""Exports: every format says the same, strictly, and whole or not at all."""

from __future__ import annotations

import csv
import os

import numpy as np
import pytest
import xarray

from featurestep import InvalidProblem
from featurestep.sweeps import (
    Store,
    execute,
    export,
    make_dataset,
    make_plan,
    make_table,
    read_sweep,
    results,
    serial,
)

from ..command import strict_json

FORMATS = [".nc", ".parquet", ".csv", ".json"]


@pytest.fixture
def done(base):
    """Two tasks over words, numbers and a point without a limit; the last task is not computed."""
    grid = base.vary(activation=["tanh", "relu"], step_exponent=[0.1, 0.25])
    tasks = {"limit": {}, "simulate": {"seeds": 2, "n_test": 50}}
    plan = make_plan(read_sweep(grid, tasks))
    with Store.in_memory() as store:
        execute(plan, store, serial)
        yield make_plan(read_sweep(grid, {**tasks, "baselines": {}})), store


def test_the_table_has_one_row_for_each_unit(done):
    table = make_table(*done)
    assert len(table["task"]) == 4 + 8 + 4
    assert list(table)[:7] == [
        *("task", "activation", "step_exponent", "variant", "seed", "status", "error"),
    ]
    assert table["status"] == ["ok", "refused"] * 2 + ["ok"] * 8 + ["missing"] * 4
    assert table["seed"][:6] == [None] * 4 + [0, 1]


def test_json_is_strict_and_complete(done, tmp_path):
    path = export(*done, tmp_path / "t.json")
    content = strict_json(path.read_text())
    table = make_table(*done)
    assert [row["test_error"] for row in content["rows"]] == table["test_error"]
    assert content["problem"]["n"] == 60


def test_csv_has_every_digit_and_no_nan(done, tmp_path):
    path = export(*done, tmp_path / "t.csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    table = make_table(*done)
    assert [float(row["test_error"]) if row["test_error"] else None for row in rows] == table[
        "test_error"
    ]
    assert "nan" not in path.read_text().lower()
    assert rows[1]["error"].startswith("degree must be given")


def test_parquet_keeps_types(done, tmp_path):
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(export(*done, tmp_path / "t.parquet"))
    expected = make_table(*done)
    assert table.column_names == list(expected)
    assert table["test_error"].to_pylist() == expected["test_error"]
    assert str(table.schema.field("seed").type) == "int64"
    assert str(table.schema.field("activation").type) == "string"


def test_netcdf_reads_back_as_the_dataset(done, tmp_path):
    path = export(*done, tmp_path / "t.nc")
    expected = make_dataset(*done)
    with xarray.open_dataset(path, engine="scipy") as found:
        found.load()
    for name in expected.data_vars:
        np.testing.assert_array_equal(found[name].values, expected[name].values)
    assert found.activation.values.tolist() == ["tanh", "relu"]
    assert found.limit_test_error.attrs == expected.limit_test_error.attrs


@pytest.mark.parametrize("seed", [2**40, 2**60 + 1])
def test_netcdf_has_room_for_large_whole_numbers(base, seed, tmp_path):
    plan = make_plan(read_sweep(base, {"simulate": {"seeds": [1, seed], "n_test": 20}}))
    with Store.in_memory() as store:
        execute(plan, store, serial)
        path = export(plan, store, tmp_path / "t.nc")
    with xarray.open_dataset(path, engine="scipy") as found:
        assert int(found.seed.values[1]) == seed


def test_provenance_says_when_where_and_by_what(done, tmp_path):
    path = export(*done, tmp_path / "t.csv", provenance=True)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert {row["executions"] for row in rows[:12]} == {"1"}
    assert all(row["host"] and row["numpy"] and row["blas"] for row in rows[:12])
    assert rows[0]["finished"].endswith("+00:00")
    with pytest.raises(InvalidProblem, match="--provenance goes with"):
        export(*done, tmp_path / "t.nc", provenance=True)


def test_mixed_columns_become_one_type():
    table = results._typed({"a": [1, 2.5, None], "b": [1, "x"], "c": [1, None], "d": [None]})
    assert table == {"a": [1.0, 2.5, None], "b": ["1", "x"], "c": [1, None], "d": [None]}


@pytest.mark.parametrize("ending", FORMATS)
def test_the_same_results_give_the_same_file(done, tmp_path, ending):
    one, two = (export(*done, tmp_path / f"{k}{ending}").read_bytes() for k in "ab")
    assert one == two


@pytest.mark.parametrize("ending", FORMATS)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(done, tmp_path, ending, monkeypatch):
    path = tmp_path / f"t{ending}"
    path.write_text("old")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(
        InvalidProblem, match=r"OUTPUT must be writable \(No space left on device\)"
    ):
        export(*done, path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("name", ["t.xls", "t", "no/t.csv", "."])
def test_bad_targets_are_refused(done, tmp_path, name):
    with pytest.raises(InvalidProblem, match="OUTPUT must"):
        export(*done, tmp_path / name)


def test_parquet_without_its_package_says_what_to_install(done, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidProblem, match=r"pip install .*\[parquet\]'"):
        export(*done, tmp_path / "t.parquet")
