"""Every numbered equation of docs/theory.md has one function that computes it."""

from __future__ import annotations

from functools import cache

from tests.theory.equations import HOMES, NOT_COMPUTED, claimed, docstrings, tags


@cache
def claims() -> dict[str, set[str]]:
    """Numbers that every function of the package claims."""
    return {name: claimed(text) for name, text in docstrings()}


def test_every_equation_is_listed_once() -> None:
    assert sorted([*HOMES, *NOT_COMPUTED]) == sorted(tags())


def test_every_home_cites_its_equation() -> None:
    silent = {n: home for n, home in HOMES.items() if n not in claims().get(home, set())}
    assert not silent


def test_nothing_else_claims_an_equation_that_has_a_home() -> None:
    others = {
        (number, name)
        for name, numbers in claims().items()
        for number in numbers
        if HOMES.get(number, name) != name
    }
    assert not others


def test_only_numbers_of_computed_equations_are_cited() -> None:
    cited = set().union(*claims().values())
    assert cited <= set(HOMES)


def test_claims_are_read_from_the_first_paragraph() -> None:
    text = "V̂ of (8) and χ (eqs. 7, 26b), then\nmore (eqs. 38–40).\n\nSee (eq. 52)."
    assert claimed(text) == {"7", "26b", "38", "39", "40"}
    assert claimed("As in (22), with eq. 4 of the start.") == set()
