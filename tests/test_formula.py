"""The grammar of Hermite sums."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestep import InvalidProblem
from featurestep.functions.formula import MAX_DEGREE, hermite_formula


@pytest.mark.parametrize(
    ("text", "coefficients"),
    [
        ("H1", (0, 1)),
        ("H1 + 0.3*H3", (0, 1, 0, 0.3)),
        ("(H1 + H2)/sqrt(2)", (0, 2**-0.5, 2**-0.5)),
        ("-H2", (0, 0, -1)),
        ("2*(H1 - 3*(H2 + 1)) / 4", (-1.5, 0.5, -1.5)),
        ("1.5e-1*H4+.5", (0.5, 0, 0, 0, 0.15)),
        ("H0 + H1", (1, 1)),
        (" H3*2 ", (0, 0, 0, 2)),
        ("H2 + H1 - H2", (0, 1)),
        ("sqrt(4)*H1 + +H2", (0, 2, 1)),
    ],
)
def test_sums(text: str, coefficients: tuple[float, ...]) -> None:
    assert hermite_formula(text, "target") == pytest.approx(coefficients)


@given(st.lists(st.floats(-5, 5).map(lambda c: round(c, 6)), min_size=2, max_size=MAX_DEGREE + 1))
def test_what_is_written_is_read_back(coefficients: list[float]) -> None:
    text = " + ".join(f"({c!r})*H{k}" for k, c in enumerate(coefficients))
    if not any(coefficients):
        with pytest.raises(InvalidProblem):
            hermite_formula(text, "target")
        return
    read = hermite_formula(text, "target")
    padded = (*read, *([0.0] * (len(coefficients) - len(read))))
    assert padded == pytest.approx(coefficients, abs=1e-15)


@given(st.text(max_size=60))
def test_any_text_is_a_sum_or_refused_in_one_line(text: str) -> None:
    refusal = None
    try:
        assert len(hermite_formula(text, "target")) <= MAX_DEGREE + 1
    except InvalidProblem as error:
        refusal = error
    if refusal is not None:
        assert refusal.parameter == "target"
        assert "\n" not in str(refusal)
