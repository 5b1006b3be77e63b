"""What the network computes along the learned direction, M(κ), against the best, E[y|κ].

An odd activation can only compute odd functions of κ: with tanh the quadratic part of the target
stays unlearned however large the step. A ReLU learns it once the step is large enough.
"""

import numpy as np

from featurestep import Problem, predict
from featurestep.functions.quadrature import gauss_hermite

KAPPA, WEIGHT = gauss_hermite(61)  # E over κ ~ N(0, 1)
base = Problem(
    n=4000,
    d=1000,
    width=3000,
    n_step=8000,
    target="H1 + H2/sqrt(2)",
    step_exponent=0.0,
    ridge=0.02,
    noise_std=0.1,
    readout="rademacher",
    centre=True,
)


def even_part(values: np.ndarray) -> np.ndarray:
    """(f(κ) + f(−κ))/2; the nodes are symmetric."""
    return 0.5 * (values + values[::-1])


def share_of_even(learned: np.ndarray, best: np.ndarray) -> float:
    """How much of the target's even part, E[y|κ]'s, the learned function has: 1 is all of it."""
    wanted = even_part(best)
    return float(WEIGHT @ (even_part(learned) * wanted) / (WEIGHT @ wanted**2))


print("E[y|κ] = γκ + γ²(κ² − 1)/√2: how much of its quadratic part is learned, and the distance")
print("activation  exponent  quadratic  E(M − E[y|κ])²")
shares: dict[str, list[float]] = {"tanh": [], "relu": []}
for activation, found in shares.items():
    distances = []
    for exponent in (0.0, 0.2, 0.3, 0.45):
        result = predict(base.replace(activation=activation, step_exponent=exponent))
        learned, best = result.learned(KAPPA), result.target_along(KAPPA)
        gamma = result.alignment
        assert np.allclose(best, gamma * KAPPA + gamma**2 * (KAPPA**2 - 1) / np.sqrt(2))

        found.append(share_of_even(learned, best))
        distances.append(float(WEIGHT @ (learned - best) ** 2))
        print(f"{activation:10s}  {exponent:8.2f}  {abs(found[-1]):9.4f}  {distances[-1]:14.4f}")
        if activation == "tanh":
            assert np.abs(even_part(learned)).max() < 1e-10 * np.abs(learned).max()
    assert distances[-1] < distances[0]

assert all(abs(share) < 1e-10 for share in shares["tanh"])
assert np.all(np.diff(shares["relu"]) > 0)
assert shares["relu"][0] < 0.05 < 0.5 < shares["relu"][-1]
