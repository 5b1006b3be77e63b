"""Problems that several tests start from."""

from __future__ import annotations

from featurestep import Problem

CENTRED_RELU = Problem(
    activation="relu",
    centre=True,
    target="H1 + H2/sqrt(2)",
    n=400,
    d=200,
    width=300,
    step_exponent=0.3,
    ridge=0.1,
)
