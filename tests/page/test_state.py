"""The state: its limits, and links that carry it whole."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurestep import InvalidProblem, predict
from featurestep.page.state import LIMITS, MAX_QUERY, Choice, Number, PageState, Text
from featurestep.page.words import PRESETS


def values(limits: object) -> st.SearchStrategy[object]:
    if isinstance(limits, Choice):
        return st.sampled_from(limits.options)
    if isinstance(limits, Text):
        letters = st.characters(categories=("L", "N", "P", "S", "Zs")).filter(str.isprintable)
        return st.text(letters, max_size=40)
    assert isinstance(limits, Number)
    if limits.whole:
        return st.integers(int(limits.low), int(limits.high))
    return st.floats(limits.low, limits.high).map(lambda v: float(f"{v:.12g}"))


STATES = st.builds(PageState, **{name: values(limits) for name, limits in LIMITS.items()})


@given(STATES)
def test_a_link_carries_every_state_whole(state: PageState) -> None:
    assert PageState.from_query(state.to_query()) == state


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_problems_and_links(name: str) -> None:
    state = PRESETS[name].state
    assert PageState.from_query(state.to_query()) == state
    assert state.problem.n == state.n


def test_the_maximal_step_is_twice_the_root_of_the_width() -> None:
    problem = PRESETS["maximal"].state.problem
    assert problem.step_size == pytest.approx(2.0 * problem.width**0.5, rel=1e-9)
    assert (problem.n, problem.d, problem.width) == (2000, 800, 1280)
    assert problem.n_step == 32 * problem.d
    exact, spiked = (
        predict(problem, method=method).test_error for method in ("exact", "isotropic")
    )
    assert spiked > 1.3 * exact


def test_what_a_link_leaves_out_keeps_its_default() -> None:
    assert PageState.from_query("") == PageState()
    assert PageState.from_query("n=500&centre=off") == PageState(n=500, centre=False)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("n=5", "n must be a whole number from 100 to 1e+06; got 5.0"),
        ("n=1e99", "n must be a whole number"),
        ("n=nan", "n must be a whole number from 100 to 1e+06; got 'nan'"),
        ("n=2000.5", "n must be a whole number"),
        ("n=1_000", "n must be a whole number"),
        ("n=٢٠٠٠", "n must be a whole number"),
        ("ridge=-1", "ridge must be a number from 1e-06 to 1000; got -1.0"),
        ("ridge=inf", "ridge must be a number"),
        ("ridge=", "ridge must be a number"),
        ("step_size=0.001", "step_size must be a number from 0.01 to 1000, or 0; got 0.001"),
        ("activation=os.system", "activation must be one of tanh"),
        ("initial=normal", "initial must be one of sphere, gaussian; got 'normal'"),
        ("centre=True", "centre must be one of on, off; got 'True'"),
        ("formula=" + "H" * 300, "formula must be at most 200 printable characters"),
        ("formula=%00", "formula must be at most 200 printable characters"),
        ("frobnicate=1", "link must name fields"),
        ("n=500&n=600", "link must give every field once; got 'n'"),
        ("n", "link must read name=value&name=value"),
        ("&".join(["n=500"] * 100), "link must read name=value&name=value"),
        ("x" * (MAX_QUERY + 1), "link must be text of at most"),
    ],
)
def test_a_bad_link_is_one_line_with_parameter_rule_and_value(query: str, message: str) -> None:
    with pytest.raises(InvalidProblem) as refused:
        PageState.from_query(query)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", [n for n, lim in LIMITS.items() if isinstance(lim, Number)])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300, "1", None, True])
def test_numbers_that_are_none_are_refused(name: str, value: object) -> None:
    with pytest.raises(InvalidProblem, match=f"^{name} must be"):
        PageState(**{name: value})


def test_the_first_layer_reaches_the_problem() -> None:
    assert PageState().problem.initial == "sphere"
    assert PageState.from_query("initial=gaussian").problem.initial == "gaussian"


def test_the_target_is_the_sum_of_the_sliders_or_the_formula() -> None:
    assert PageState(c1=1.0, c2=-0.5, c3=0.0, c4=0.25).target_text == "1*H1 - 0.5*H2 + 0.25*H4"
    assert PageState(target="formula", formula=" tanh ").target_text == "tanh"
    with pytest.raises(InvalidProblem, match="target must not be the zero function"):
        _ = PageState(c1=0.0, c2=0.0).problem


def test_a_formula_is_parsed_and_never_evaluated() -> None:
    with pytest.raises(InvalidProblem, match="target must be one of"):
        _ = PageState(target="formula", formula="__import__('os').getcwd()").problem


def test_the_step_is_an_exponent_or_a_size() -> None:
    assert PageState(
        step="exponent", step_exponent=0.25, n=10_000
    ).problem.step_size == pytest.approx(10.0)
    still = PageState(step="size", step_size=0.0)
    assert still.problem.step_size == 0.0
    assert still.exponent is None
    assert PageState(step="size", step_size=10.0, n=100).exponent == pytest.approx(0.5)
    assert PageState(step_ratio=4.0, n=500).problem.n_step == 2000
