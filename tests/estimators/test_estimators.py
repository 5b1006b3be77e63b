"""Pipelines, searches, pickles, frames, dtypes, outputs, refusals."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from featurestep import InsufficientMemory, InvalidProblem
from featurestep.core.errors import install_command
from featurestep.estimators import OneStepClassifier, OneStepFeatures, OneStepRegressor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((160, 6))
Y = np.column_stack([X[:, 0] + X[:, 0] ** 2, X[:, 1] - 2.0])
CLASSES = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]


def test_pipelines_and_searches():
    chain = make_pipeline(MinMaxScaler(), OneStepFeatures(width=30, random_state=0), Ridge())
    assert chain.fit(X, Y[:, 0]).score(X, Y[:, 0]) > 0.5
    grid = {"step_size": [0.0, 20.0], "split": ["half", "reuse"]}
    search = GridSearchCV(OneStepRegressor(width=60, ridge=1e-3, random_state=0), grid, cv=3)
    scores = search.fit(X, Y[:, 0]).cv_results_["mean_test_score"]
    assert search.best_score_ == max(scores) > 0.7
    assert len(set(scores)) == 4


@pytest.mark.parametrize("kind", [OneStepRegressor, OneStepClassifier, OneStepFeatures])
def test_clones_and_pickles_do_the_same(kind):
    labels = CLASSES if kind is OneStepClassifier else Y[:, 0]
    model = kind(width=20, random_state=3).fit(X, labels)
    again = pickle.loads(pickle.dumps(model))
    cloned = clone(model).fit(X, labels)
    for other in (again, cloned):
        np.testing.assert_array_equal(other.transform(X), model.transform(X))
    if kind is not OneStepFeatures:
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_features_alone_keep_no_rows():
    """A pickle of the transformer does not grow with the data; explanations need the rows."""
    sizes = {
        kind: [
            len(pickle.dumps(kind(width=5, random_state=0).fit(X[:n], Y[:n, 0]))) for n in (80, 160)
        ]
        for kind in (OneStepFeatures, OneStepRegressor)
    }
    assert abs(sizes[OneStepFeatures][1] - sizes[OneStepFeatures][0]) < 100
    assert sizes[OneStepRegressor][1] > sizes[OneStepRegressor][0] + X[:80].nbytes


def test_pandas_in_and_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"), index=np.arange(160) + 7)
    model = OneStepFeatures(width=5, random_state=0).set_output(transform="pandas")
    found = model.fit(frame, CLASSES).transform(frame)
    assert list(found.columns) == [f"onestepfeatures{k}" for k in range(5)]
    assert list(found.index) == list(frame.index)
    assert list(model.feature_names_in_) == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[list("fedcba")])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_is_kept(dtype):
    model = OneStepRegressor(width=20, random_state=0).fit(X.astype(dtype), Y)
    assert model.weights_.dtype == model.readout_.dtype == dtype
    assert model.predict(X.astype(dtype)).dtype == model.transform(X.astype(dtype)).dtype == dtype
    double = OneStepRegressor(
        width=20, random_state=0, step_size=model.step_size_, ridge=model.ridge_
    )
    np.testing.assert_allclose(
        model.predict(X.astype(dtype)), double.fit(X, Y).predict(X), atol=1e-3
    )


def test_several_outputs_take_one_gradient_each():
    model = OneStepRegressor(width=80, random_state=0, step_size=10.0).fit(X, Y)
    assert model.readout_.shape == (80, 2)
    assert model.predict(X).shape == (160, 2)
    assert model.directions_.shape == (2, 6)
    assert abs(model.directions_[0, 0]) > 0.9
    assert abs(model.directions_[1, 1]) > 0.9
    # The step of two outputs is the sum of theirs: with one constant label it is the other's.
    alone = OneStepFeatures(width=80, random_state=0, step_size=10.0, ridge=1.0).fit(X, Y[:, :1])
    constant = np.column_stack([Y[:, 0], np.ones(160)])
    beside = OneStepFeatures(width=80, random_state=0, step_size=10.0, ridge=1.0).fit(X, constant)
    np.testing.assert_allclose(beside.weights_, alone.weights_, atol=1e-12)


def test_classes_come_back_by_name():
    model = OneStepClassifier(width=100, random_state=0).fit(X, CLASSES)
    assert model.decision_function(X).shape == (160, 3)
    assert np.mean(model.predict(X) == CLASSES) > 0.8
    two = OneStepClassifier(width=100, random_state=0).fit(X, X[:, 0] > 0)
    assert two.decision_function(X).shape == (160,)
    assert np.mean(two.predict(X) == (X[:, 0] > 0)) > 0.9


def test_units_do_not_matter():
    """Columns and labels in other units: the same predictions in those units."""
    model = OneStepRegressor(width=40, random_state=0).fit(X, Y[:, 0])
    scaled = OneStepRegressor(width=40, random_state=0).fit(1e3 * X + 5.0, 1e-4 * Y[:, 0] + 2.0)
    expected = 1e-4 * model.predict(X) + 2.0
    np.testing.assert_allclose(scaled.predict(1e3 * X + 5.0), expected, rtol=1e-8)


def test_whitening_makes_correlated_columns_equal_to_their_independent_mixture():
    mix = np.linalg.qr(RNG.standard_normal((6, 6)))[0] @ np.diag([1.0, 2.0, 5.0, 0.1, 1.0, 3.0])
    model = OneStepRegressor(width=40, random_state=0, whiten=True, standardise=False)
    Z = model.fit(X @ mix.T, Y[:, 0]).input_map_(X @ mix.T)
    np.testing.assert_allclose(Z.T @ Z / len(Z), np.eye(6), atol=1e-10)
    # A repeated column has no direction of its own.
    doubled = model.fit(np.column_stack([X, X[:, 0]]), Y[:, 0])
    assert doubled.weights_.shape == (40, 6)


def test_more_steps_go_on_from_where_the_first_arrived():
    given = {"width": 30, "random_state": 0, "ridge": 0.1, "split": "reuse", "step_size": 2.0}
    one, two = (OneStepFeatures(steps=k, **given).fit(X, Y[:, 0]) for k in (1, 2))
    Z, r = one.input_map_(X), (Y[:, 0] - Y[:, 0].mean()) / Y[:, 0].std()
    network = one._network_of()
    a = network.initial_readouts[0]
    slopes = (Z @ one.weights_.T > 0).astype(float)
    G = (slopes * r[:, None] * a).T @ Z / len(Z)
    np.testing.assert_allclose(two.weights_, one.weights_ + 2.0 * G, atol=1e-12)
    for split in ("half", "reuse"):
        chosen = OneStepRegressor(width=30, random_state=0, steps=2, split=split).fit(X, Y[:, 0])
        assert chosen.selection_.scores.shape == (5, 17)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"width": 0}, "width must be a whole number"),
        ({"step_size": -1.0}, "step_size must be >= 0; got -1.0"),
        ({"step_size": "large"}, "step_size must be auto or a number; got 'large'"),
        ({"ridge": 0.0}, "ridge must be > 0; got 0.0"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"split": "third"}, "split must be one of reuse, half; got 'third'"),
        ({"readout": "normal"}, "readout must be one of"),
        ({"activation": "abs"}, "activation must have c_1"),
        ({"device": "tpu"}, "device must be"),
    ],
)
def test_bad_parameters_are_one_line(given, words):
    with pytest.raises(InvalidProblem, match=words) as caught:
        OneStepRegressor(**given).fit(X, Y[:, 0])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("split", ["half", "reuse"])
def test_what_does_not_fit_into_memory_is_refused_with_its_bytes(split):
    for kind in (OneStepRegressor, OneStepFeatures):
        model = kind(width=10**8, split=split)
        with pytest.raises(InsufficientMemory, match=r"needs about .* bytes\); .* are free: lower"):
            model.fit(X, Y[:, 0])
    with pytest.raises(InsufficientMemory, match="width 100000000 on 160 rows and 6 columns"):
        OneStepClassifier(width=10**8, split=split, loss="logistic").fit(X, CLASSES)


def test_sparse_rows_and_single_classes_are_refused_in_one_line():
    with pytest.raises(TypeError, match="dense data is required") as caught:
        OneStepRegressor().fit(sparse.csr_array(X), Y[:, 0])
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidProblem, match="y must have at least 2 classes; got '1 class'"):
        OneStepClassifier().fit(X, np.zeros(160))
    with pytest.raises(InvalidProblem, match="y must be one class for each row, or numbers"):
        OneStepFeatures().fit(X, np.zeros((160, 2), dtype=int))


def test_without_scikit_learn_it_says_what_to_install():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "try:\n    import featurestep.estimators\n"
        "except ImportError as error:\n    print(error)\n"
        "import featurestep; print(featurestep.Problem.__name__)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    words = f"featurestep.estimators needs scikit-learn: {install_command('sklearn')}"
    assert run.stdout.splitlines() == [words, "Problem"]
