"""Between the untrained network and the limit: what finite n has gained in each regime.

The limit n → ∞ is a staircase in the step exponent: regime ℓ learns powers of the learned direction
up to ℓ. At finite n the error lies between the untrained network's and its regime's limit, and
comes closer to the limit as n grows.
"""

from itertools import pairwise

import numpy as np

from featurestep import Problem, function, limit, predict

# tanh(s + 1/2) has every Hermite coefficient c_1 … c_3, so that each regime adds a power.
shifted_tanh = function(lambda s: np.tanh(s + 0.5), name="tanh(s + 1/2)")
base = Problem.from_ratios(
    phi=0.3,
    psi=0.4,
    n=3000,
    activation=shifted_tanh,
    centre=True,
    target="H1 + H2/2 + H3/3",
    step_exponent=0.2,
    ridge=0.05,
    noise_std=0.1,
)
exponents = {degree: 0.5 - 1 / (2 * degree + 1) for degree in (1, 2, 3)}
untrained = predict(base.replace(step_size=0.0)).test_error

print(f"untrained network: test error {untrained:.4f}\n")
print("degree  exponent  n = 3e3   n = 3e6   n = 3e9   limit     gain")
gains = []
for degree, exponent in exponents.items():
    end = limit(base, degree, norm_growth=True)
    errors = []
    for factor in (1, 10**3, 10**6):
        sizes = {"n": base.n * factor, "d": base.d * factor, "width": base.width * factor}
        errors.append(predict(base.replace(step_exponent=exponent, **sizes)).test_error)
    row = "    ".join(f"{value:.4f}" for value in (*errors, end.test_error, end.test_gain))
    print(f"{degree:6d}  {exponent:8.4f}  {row}")

    assert untrained > errors[0] > errors[1] > errors[2] > end.test_error
    assert base.replace(step_exponent=exponent).degree == degree
    gains.append((end.train_gain, end.test_gain))

for (train, test), (next_train, next_test) in pairwise(gains):
    assert next_train > train > 0
    assert next_test > test > 0
