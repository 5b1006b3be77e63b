"""The grammar of Hermite sums and of formulas."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestep import InvalidProblem, Problem
from featurestep.functions.activations import resolve
from featurestep.functions.formula import MAX_DEGREE, Formula, formula, hermite_formula
from featurestep.functions.nonlinearity import Nonlinearity
from featurestep.functions.targets import resolve_target


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
        ("2^-0.5*H1 + (1 + 1)^2^0.5*H2", (0, 2**-0.5, 2 ** (2**0.5))),
        ("-2^2 + 007*H1 + 00.5*H2 + 1e-05*H3", (-4, 7, 0.5, 1e-5)),
        (".5*H1 + .25*H2 + .125*H3 + 0.e1 + 0e3*H4", (0, 0.5, 0.25, 0.125)),
        ("pi *\tH1", (0, np.pi)),
        (" + ".join(["H1"] * 80), (0, 80)),
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


Z1, Z2, Z3 = np.random.default_rng(3).normal(size=(3, 50))
IN_VARIABLES = {
    "z1 + z2^2 - 1 + z1*z2": Z1 + Z2**2 - 1 + Z1 * Z2,
    "z1 + 0.5*z2 + tanh(z1*z2)": Z1 + 0.5 * Z2 + np.tanh(Z1 * Z2),
    "-z1^2/2 - H3(z2)/6": -(Z1**2) / 2 - (Z2**3 - 3 * Z2) / 6,
    "exp(-z3**2) * cos(pi*z1) + sqrt(abs(z2))": np.exp(-(Z3**2)) * np.cos(np.pi * Z1)
    + np.sqrt(np.abs(Z2)),
    "z3 + z1": Z3 + Z1,
    "3": np.full(50, 3.0),
}


def read(text: str) -> Formula:
    return formula(text, {"tanh": np.tanh, "abs": np.abs})


def rows(found: Formula) -> np.ndarray:
    """Inputs along the directions that a formula names."""
    known = {"z1": Z1, "z2": Z2, "z3": Z3}
    return np.array([known[name] for name in found.labels]).reshape(-1, 50).T


@pytest.mark.parametrize("text", IN_VARIABLES)
def test_a_formula_in_several_variables_is_the_function_it_writes(text: str) -> None:
    found = read(text)
    np.testing.assert_allclose(found(rows(found)), IN_VARIABLES[text], rtol=1e-14)


def test_a_formula_knows_which_variables_it_uses_and_may_have_one() -> None:
    assert read("z3*z1 + H2(z1)").labels == ("z1", "z3")
    assert read("z2 + z2^3").labels == ("z2",)
    assert read("1/z1")(np.zeros((2, 1))).tolist() == [np.inf, np.inf]
    with pytest.raises(ValueError, match="zip"):
        read("z1")(np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("z1 + z4", "at character 6: unexpected 'z4'"),
        ("z1 z2", "at character 4: unexpected 'z2'"),
        ("2 z1", "at character 3: unexpected 'z1'"),
        ("z1(2)", "at character 1: unexpected 'z1'"),
        ("tanh + z1", "at character 1: unexpected 'tanh' without an argument"),
        ("z1 + tanh()", "at character 11: unexpected ')'"),
        ("tanh(z1, z2)", "at character 8: unexpected ','"),
        ("z1 + open('x')", "at character 6: unexpected 'open'"),
        ("z1.real", "at character 3: unexpected '.'"),
        ("z1 if z1 else z2", "at character 4: unexpected 'if'"),
        ("lambda: z1", "at character 1: unexpected 'lambda'"),
        ("z1 + H21(z2)", "at character 6: degrees go up to 20"),
        ("z1^2 + 1e31", "at character 8: numbers go up to 1e+30"),
        ("(z1", "ends too early"),
        ("z1 + ", "ends too early"),
        ("", "nothing given"),
        ("z1" + "^z1" * 60, "at character 124: nested too deeply"),
    ],
)
def test_what_is_no_formula_is_refused_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(InvalidProblem) as refusal:
        read(text)
    assert f"must be a formula in z, or in z1, z2, z3 such as 'z1 + z1*z2' ({reason}" in str(
        refusal.value
    )


@given(st.text(alphabet="z12H^*/+-().0 eEsqrtpi\n", max_size=40))
def test_any_text_is_a_formula_or_refused_in_one_line(text: str) -> None:
    refusal = None
    try:
        found = read(text)
        assert found(rows(found)).shape == Z1.shape
    except InvalidProblem as error:
        refusal = error
    assert refusal is None or "\n" not in str(refusal)


@pytest.mark.parametrize(
    ("text", "kinks"),
    [
        ("relu(z)", (0.0,)),
        ("abs(z1-0.5)", (0.5,)),
        ("max(z, 0)", (0.0,)),
        ("min(2*z, 1) + H2", (0.5,)),
        ("hard_tanh(z/2)", (-2.0, 2.0)),
        ("abs(z^2 - 1)", (-1.0, 1.0)),
        ("relu(abs(z) - 1)", (-1.0, 0.0, 1.0)),
        ("tanh(z) + sin(3*z)", ()),
    ],
)
def test_formulas_of_one_variable_bring_their_kinks(text: str, kinks: tuple[float, ...]) -> None:
    found = resolve_target(text)
    assert isinstance(found, Nonlinearity)
    assert found.kinks == pytest.approx(kinks, abs=1e-10)


@pytest.mark.parametrize(
    ("text", "name"), [("relu(z)", "relu"), ("max(z, 0)", "relu"), ("z", "H1")]
)
def test_a_formula_is_the_function_it_names(text: str, name: str) -> None:
    formula, named = (resolve(spec, "activation") for spec in (text, name))
    rho, t = np.array([0.3, 1.0, 2.0]), np.array([-1.0, 0.2, 3.0])
    for ours, theirs in zip(formula.moments(rho, t), named.moments(rho, t), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(
    ("parameter", "text", "words"),
    [
        ("activation", "ReLU", "did you mean 'relu'"),
        ("activation", "tahn(z)", "did you mean 'tanh'"),
        ("activation", "z1 + z2", "a formula in z"),
        ("target", "z + z1", "write z1"),
        ("activation", "max(z)", "max takes two arguments"),
        ("activation", "tanh(z, 1)", "unexpected ','"),
        ("activation", "max(z, 1, 2)", "max takes two arguments"),
    ],
)
def test_what_is_no_formula_of_one_variable_is_refused(
    parameter: str, text: str, words: str
) -> None:
    sizes = {"n": 60, "d": 30, "width": 40, "ridge": 0.1, "step_exponent": 0.3}
    with pytest.raises(InvalidProblem, match=re.escape(words)):
        Problem(**{parameter: text}, **sizes)
