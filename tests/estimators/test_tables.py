"""`featurestep fit`: files in, a table, a pipeline and a verdict out; bad files in one line."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from featurestep.estimators import tables
from tests import command

pandas = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def one_thread():
    """Boosted trees wait for each other's threads on a busy machine."""
    with threadpool_limits(1):
        yield


def frame(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    made = pandas.DataFrame(X, columns=list("abcdef"))
    made["town"] = rng.choice(["Ulm", "Rom", None], n)
    made["name"] = [f"row {k}" for k in range(n)]
    made.loc[::9, "b"] = np.nan
    made["same"] = 3
    z = X[:, 0]
    made["price"] = z + 0.7 * (z**2 - 1) + (made["town"] == "Rom") + 0.1 * rng.standard_normal(n)
    made["kind"] = np.where(made["price"] > 0, "dear", "cheap")
    made.loc[3, "price"] = np.nan
    return made


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_a_file_gives_a_table_a_pipeline_a_picture_and_a_verdict(ending, tmp_path):
    path, saved, drawn = (tmp_path / name for name in (f"houses{ending}", "m.joblib", "l.svg"))
    made = frame()
    if ending == ".parquet":
        made.to_parquet(path)
    else:
        made.to_csv(path, index=False, sep="," if ending == ".csv" else "\t")
    asked = ["fit", str(path), "--target", "price", "--width", "60", "--save", str(saved)]
    text = command.run(*asked, "--plot", str(drawn)).stdout
    assert "199 rows, 6 columns of numbers, 2 of categories; price is a number" in text
    for name in ("one step", "random features", "ridge", "boosted trees"):
        assert f" {name} " in text
    assert "The step " in text
    assert "Note: rows without a value of price are left out: 1." in text
    assert "Note: column name is left out: text with 199 different values, such as 'row 0'." in text
    assert "Note: column same is left out: it has one value." in text
    assert drawn.read_text().startswith("<?xml")
    pipeline = joblib.load(saved)
    data = tables.prepared(made, "price", "auto")
    again = tables.models(data, 60, 0)[tables.ONE_STEP].fit(data.X, data.y)
    np.testing.assert_allclose(pipeline.predict(made), again.predict(made), rtol=1e-6)
    assert "town = Rom" in pipeline[-1].feature_names_in_


def test_classes_and_json(tmp_path):
    path = tmp_path / "houses.csv"
    frame().drop(columns="price").to_csv(path, index=False)
    found = command.run_json("fit", str(path), "--target", "kind", "--width", "40")
    assert (found["task"], found["rows"]) == ("classification", 200)
    errors = {name: each["error"] for name, each in found["models"].items()}
    assert all(0.0 <= error < 0.5 for error in errors.values())
    assert found["verdict"].startswith("The step ")


def test_whole_numbers_of_few_values_are_classes_unless_asked_otherwise():
    made = pandas.DataFrame({"x": np.arange(60.0), "y": np.arange(60) % 3})
    assert tables.prepared(made, "y", "auto").classes
    assert not tables.prepared(made, "y", "regression").classes
    assert not tables.prepared(made, "x", "auto").classes


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        ((0.1, 0.12, 0.11), "worth it"),
        ((0.1, -0.1, 0.02), "no clear"),
        ((-0.1, -0.12, -0.1), "harm"),
    ],
)
def test_the_verdict_follows_the_paired_differences(gains, words):
    step = tables.Scores(np.full(3, 0.3), 1.0)
    random = tables.Scores(0.3 + np.array(gains), 1.0)
    text = tables.verdict({tables.ONE_STEP: step, tables.RANDOM: random})
    assert words in text
    assert ("One step has the smallest" in text) == (np.mean(gains) > 0)


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (None, (), "FILE cannot be read"),
        (b"", (), "FILE is not a table that pandas reads"),
        (bytes(range(256)) * 4, (), "FILE is not a table that pandas reads"),
        (b"a,b\n1,2\n", (), "FILE must have at least 20 rows"),
        (
            b"a,b\n" + b"1,2\n" * 30,
            ("--target", "c"),
            "must be a column of the file (a, b)",
        ),
        (b"a,b\n" + b"1,2\n" * 30, (), "--target must have at least 2 different values; got 1"),
        (b"a,b,b\n" + b"1,2,3\n" * 30, (), "must have columns of different names; got 'b'"),
        ("a,größe\n".encode("latin-1") + b"1,2\n" * 30, (), "FILE must be text in UTF-8: save it"),
        (b"a\n" + b"1\n2.5\n" * 30, (), "FILE must have a column to predict from"),
        (b"a,b\n" + b"1.5,inf\n2,1\n" * 30, (), "numbers of size up to 1e+100; got 'column b'"),
        (b"a,b\n" + b"1.5,3\n1e200,1\n" * 30, (), "numbers of size up to 1e+100; got 1e+200"),
        (b"a, b ,b\n" + b"1,2,3\n" * 30, (), "must have columns of different names; got 'b'"),
        (b"a,b\n" + b"x,1\ny,2\n" * 3 + b"z,1\n" * 30, (), "rows of each of its 3 classes; got 3"),
        (b"a,b\nx,1\n" + b"y,2\n" * 30, ("--task", "regression"), "must have numbers for --task"),
        (b"a,b\n1,1\n", ("--task", "sort"), "--task must be one of auto, regression"),
        (b"a,b\n1,1\n", ("--width", "0"), "--width must be a whole number"),
        (b"a,b\n1,1\n", ("--seed", "x"), "--seed must be a whole number"),
        (b"a,b\n1,1\n", ("--save", "model.zip"), "--save must end in .joblib, .pkl"),
        (b"a,b\n1,1\n", ("--plot", "p.gif"), "--plot must end in .png, .pdf, .svg"),
    ],
)
def test_bad_files_and_options_are_one_line(content, arguments, words, tmp_path):
    path = tmp_path / "data.csv"
    if content is not None:
        path.write_bytes(content)
    asked = arguments if "--target" in arguments else ("--target", "a", *arguments)
    refused = command.run("fit", str(path), *asked, code=2)
    assert refused.stdout == ""
    assert words in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_other_endings_are_refused_and_close_names_suggested(tmp_path):
    refused = command.run("fit", "data.xlsx", "--target", "a", code=2)
    assert "FILE must end in .csv, .csv.gz, .tsv, .parquet" in refused.stderr
    path = tmp_path / "houses.csv"
    frame().to_csv(path, index=False)
    refused = command.run("fit", str(path), "--target", "prise", code=2)
    assert "did you mean 'price'?" in refused.stderr


@pytest.mark.parametrize(
    ("separator", "decimal"), [(";", "."), (";", ","), ("\t", ","), ("|", ".")]
)
def test_other_separators_and_decimal_commas_are_read(separator, decimal, tmp_path):
    path, plain = tmp_path / "data.csv", frame()
    plain.to_csv(path, index=False, sep=separator, decimal=decimal)
    found = tables.read_table(str(path))
    assert [*found.columns] == [*plain.columns]
    numbers = plain.select_dtypes("number")
    np.testing.assert_allclose(found[numbers.columns], numbers, equal_nan=True)


def test_spaces_around_names_of_columns_do_not_count(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a, b\n1,2\n")
    assert [*tables.read_table(str(path)).columns] == ["a", "b"]


def test_a_target_of_text_is_refused_as_such(tmp_path):
    path = tmp_path / "data.csv"
    prices = [f"{k},{k} EUR" for k in range(40)]
    pandas.DataFrame({"a": prices, "b": range(40)}).to_csv(path, index=False)
    refused = command.run("fit", str(path), "--target", "a", code=2).stderr
    assert "must be numbers or classes; here it is text with 40 different values" in refused


def test_a_target_with_one_word_among_numbers_is_refused_by_that_word(tmp_path):
    path, plain = tmp_path / "data.csv", frame()
    plain["price"] = plain["price"].astype(object)
    plain.loc[5, "price"] = "unknown"
    plain.to_csv(path, index=False)
    for task in ("auto", "regression"):
        refused = command.run("fit", str(path), "--target", "price", "--task", task, code=2).stderr
        assert "got 'unknown'" in refused


def test_a_column_of_numbers_with_a_few_words_stays_one(tmp_path):
    """One such word made the column text of many values, which is left out."""
    path, plain = tmp_path / "data.csv", frame()
    plain["a"] = plain["a"].astype(object)
    plain.loc[5, "a"], plain.loc[7:8, "c"] = "unknown", np.nan
    plain["c"] = plain["c"].map(lambda value: "?" if value != value else str(value))
    plain.to_csv(path, index=False)
    data = tables.prepared(tables.read_table(str(path)), "price", "auto")
    assert {"a", "c"} <= {*data.numbers}
    assert data.X["a"].isna().sum() == 1
    assert any(
        "a is read as numbers; missing: 1 value that is no number ('unknown')" in note
        for note in data.notes
    )
    assert any(
        "c is read as numbers; missing: 2 that are none ('?')" in note for note in data.notes
    )
    fitted = tables.models(data, 20, 0)[tables.ONE_STEP].fit(data.X, data.y)
    fresh = plain.drop(index=3)
    np.testing.assert_allclose(fitted.predict(fresh), fitted.predict(data.X))


def test_columns_that_are_left_out_say_what_they_are():
    made = frame()
    made["sold"] = pandas.date_range("2020-01-01", periods=200).strftime("%d.%m.%Y")
    made["empty"] = np.nan
    made["cost"] = [f"${k},000" for k in range(200)]
    made.insert(0, "Unnamed: 0", range(200))
    notes = " ".join(tables.prepared(made, "price", "auto").notes)
    assert "column sold is left out: it has dates; columns of numbers" in notes
    assert "column empty is left out: it has no values" in notes
    assert "column cost is left out: text with 199 different values, such as '$0,000'" in notes
    assert "a column without a name is left out: it numbers the rows" in notes


def test_whole_numbers_that_are_taken_as_classes_are_told():
    made = frame().assign(stars=np.arange(200) % 5)
    note = "stars is taken as classes, being whole numbers of 5 values: see --task regression"
    assert note in tables.prepared(made, "stars", "auto").notes
    assert note not in tables.prepared(made, "stars", "regression").notes


def test_models_that_are_no_better_than_a_constant_are_told():
    bad = tables.Scores(np.array([1.1, 1.2, 1.0]), 1.0)
    scores = {tables.ONE_STEP: bad, tables.RANDOM: bad, "ridge": bad}
    numbers = tables.prepared(frame(), "price", "auto")
    text = tables.verdict(scores, tables.error_of_a_constant(numbers))
    assert text == "No model does better than a constant, whose error is 1."
    kinds = tables.prepared(frame(), "kind", "auto")
    share = max(np.mean(kinds.y == "dear"), np.mean(kinds.y == "cheap"))
    assert tables.error_of_a_constant(kinds) == pytest.approx(1.0 - share)


def test_another_model_with_a_smaller_error_is_named():
    scores = {
        tables.ONE_STEP: tables.Scores(np.array([0.2, 0.21, 0.2]), 1.0),
        tables.RANDOM: tables.Scores(np.array([0.4, 0.42, 0.41]), 1.0),
        "ridge": tables.Scores(np.array([0.1, 0.1, 0.1]), 1.0),
    }
    text = tables.verdict(scores)
    assert text.endswith("0.41 without, but the smallest error is that of ridge, 0.1.")


def test_a_step_of_size_0_is_told():
    same = tables.Scores(np.array([0.2, 0.3, 0.4]), 1.0)
    text = tables.verdict({tables.ONE_STEP: same, tables.RANDOM: same})
    assert "chose a step of size 0, so that both are the same network" in text
    assert "One step has the smallest" not in text
