"""Readouts of other losses than the square a second time: whole matrices, textbook solvers.

It takes from the package what `dense` takes. Labels come from the draws of the same problem with
the square loss, where they are real.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from .dense import draw_of, features, normals, whole

BINARY = ("logistic", "squared_hinge", "hinge", "square_signs")
VALUE = {
    "square": lambda y, f: 0.5 * (y - f) ** 2,
    "huber": lambda y, f: special.huber(1.0, y - f),
    "logistic": lambda y, f: np.logaddexp(0.0, -y * f),
    "squared_hinge": lambda y, f: 0.5 * np.maximum(0.0, 1.0 - y * f) ** 2,
    "hinge": lambda y, f: np.maximum(0.0, 1.0 - y * f),
    "square_signs": lambda y, f: 0.5 * (y - f) ** 2,
}
SLOPE = {
    "square": lambda y, f: f - y,
    "huber": lambda y, f: np.where(np.abs(f - y) < 1.0, f - y, np.sign(f - y)),
    "logistic": lambda y, f: -y / (1.0 + np.exp(y * f)),
    "squared_hinge": lambda y, f: np.where(y * f < 1.0, f - y, 0.0),
    "square_signs": lambda y, f: f - y,
}
CURVATURE = {
    "square": lambda y, f: 1.0 + 0.0 * f,
    "huber": lambda y, f: 1.0 * (np.abs(f - y) < 1.0),
    "logistic": lambda y, f: 1.0 / (2.0 + np.exp(f) + np.exp(-f)),
    "squared_hinge": lambda y, f: 1.0 * (y * f < 1.0),
    "square_signs": lambda y, f: 1.0 + 0.0 * f,
}


def labels(problem, draw, sample):
    """Labels of a sample of `draw`, from the real ones of the same problem with the square loss."""
    real = problem.replace(loss="square", intercept=False, flip=0.0)
    twin = draw_of(real, draw.setting, seed=draw.streams.seed, n_test=draw.n_test)
    _, clean, noise = whole(twin, sample)
    y = clean + problem.noise_std * noise
    if problem.loss not in BINARY:
        return y
    y = np.where(y >= 0.0, 1.0, -1.0)
    chosen = special.ndtr(normals(draw, "flips", sample.part, len(y), 1)[:, 0]) < problem.flip
    return np.where(chosen, -y, y)


def fit(F, y, *, loss, ridge, intercept):
    """a and b: Newton's method with halved steps on the full Hessian, or SciPy's SLSQP."""
    n, N = F.shape
    if loss == "hinge":
        return fit_hinge(F, y, ridge * n, intercept)
    X = np.hstack([F, np.ones((n, 1))]) if intercept else F
    penalty = ridge * np.r_[np.ones(N), np.zeros(X.shape[1] - N)]

    def objective(x):
        return VALUE[loss](y, X @ x).mean() + 0.5 * penalty @ x**2

    x = np.zeros(X.shape[1])
    for _ in range(300):
        gradient = X.T @ SLOPE[loss](y, X @ x) / n + penalty * x
        H = X.T @ (CURVATURE[loss](y, X @ x)[:, None] * X) / n + np.diag(penalty)
        step = np.linalg.solve(H + 1e-10 * np.linalg.norm(gradient) * np.eye(len(x)), gradient)
        size = 1.0
        while objective(x - size * step) > objective(x) + 1e-15 and size > 1e-8:
            size /= 2.0
        x = x - size * step
        if np.linalg.norm(step) < 1e-13 * np.linalg.norm(x):
            break
    return x[:N], (x[N] if intercept else 0.0)


def fit_hinge(F, y, shift, intercept):
    """SLSQP finds which samples are on the margin; their equations yf = 1 are then solved."""
    Q = (y[:, None] * F) @ (y[:, None] * F).T / shift
    balanced = {"type": "eq", "fun": lambda v: y @ v, "jac": lambda v: y}
    found = optimize.minimize(
        lambda v: 0.5 * v @ Q @ v - v.sum(),
        np.full(len(y), 0.1),
        jac=lambda v: Q @ v - 1.0,
        bounds=[(0.0, 1.0)] * len(y),
        constraints=[balanced] if intercept else [],
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 2000},
    )
    free = (found.x > 1e-5) & (found.x < 1.0 - 1e-5)
    alpha = np.round(found.x)
    count, border = free.sum(), y[free, None] * intercept
    bordered = np.block([[Q[np.ix_(free, free)], border], [border.T, np.eye(1) * (not intercept)]])
    alpha[free] = 0.0
    solved = np.linalg.solve(bordered, np.r_[(1.0 - Q @ alpha)[free], -(y @ alpha) * intercept])
    alpha[free] = solved[:count]
    return F.T @ (y * alpha) / shift, solved[count] * intercept


def expected(problem, clean, f):
    """Mean loss and error over the labels of test inputs, by quadrature over the noise."""
    z = np.linspace(-8.0, 8.0, 20_001)
    y, w = clean[:, None] + problem.noise_std * z, np.exp(-0.5 * z**2)
    w = w / w.sum()
    if problem.loss not in BINARY:
        f = f[:, None]
        return (VALUE[problem.loss](y, f) @ w).mean(), ((y - f) ** 2 @ w).mean()
    up = special.ndtr(clean / problem.noise_std) if problem.noise_std else 1.0 * (clean >= 0.0)
    up = up * (1.0 - problem.flip) + (1.0 - up) * problem.flip
    both = [VALUE[problem.loss](side, f) for side in (1.0, -1.0)]
    return (up * both[0] + (1.0 - up) * both[1]).mean(), np.where(f > 0, 1 - up, up).mean()


def plain(problem, draw, variant="trained"):
    """All numbers of one network."""
    X, *_ = whole(draw, draw.readout_sample(problem.n))
    y = labels(problem, draw, draw.readout_sample(problem.n))
    F = features(problem, draw, variant, X, 0)
    kind = {"loss": problem.loss, "ridge": problem.ridge, "intercept": problem.intercept}
    a, b = fit(F, y, **kind)
    f = F @ a + b
    X_test, clean, _ = whole(draw, draw.test_sample())
    test = expected(problem, clean, features(problem, draw, variant, X_test, 1) @ a + b)
    loss = VALUE[problem.loss](y, f).mean()
    wrong = (y * f < 0).mean() if problem.loss in BINARY else np.mean((y - f) ** 2)
    return {
        "test_loss": test[0],
        "train_loss": loss,
        "train_objective": loss + 0.5 * problem.ridge * a @ a,
        "test_error": test[1],
        "train_error": wrong,
        "readout_norm": np.linalg.norm(a),
        "intercept": b,
    }
