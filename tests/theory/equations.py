"""Which function computes which numbered equation of docs/theory.md.

A function says that it is an equation's home in the first paragraph of its docstring, in round
brackets: "(eq. 3)", "(eqs. 22, 23)" or "(eqs. 25–27)". All others speak of an equation as "of (3)"
or "by (22)", without "eq." inside the brackets.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "featurestep"

# Number → module:function, or module:Class.method.
HOMES = {
    "1": "core.spiked:beta_norm_squared",
    "2": "core.spiked:spiked_weights",
    "3": "core.spiked:SpikedWeights.shift",
    "4": "core.spiked:SpikedWeights.norm",
    "45": "theory.labels:target_values",
    "50": "theory.labels:label_moments",
    "52": "theory.labels:left_by_kappa",
}

# Number → why there is no function for it.
NOT_COMPUTED = {
    "20": "the weights of single neurons: simulations draw them, the theory needs their law (21)",
    "33": "the limit n_step/d → ∞, which the tests solve on their own",
    "53": "the same for several directions",
}

# Number → module that computes it; it moves to HOMES when a docstring there says so.
TO_ASSIGN = {
    "5": "theory.moments",
    "6": "theory.labels",
    "7": "theory.exact.fixed_point",
    "8": "theory.exact.fixed_point",
    "9": "theory.weight_side",
    "10": "theory.response",
    "11": "theory.risk",
    "12": "theory.risk",
    "13": "theory.risk",
    "14": "theory.risk",
    "15": "theory.risk",
    "16": "theory.spectra",
    "17": "theory.spectra",
    "18": "theory.spectra",
    "19": "theory.exact.slopes",
    "21": "theory.exact.step",
    "22": "theory.exact.fixed_point",
    "23": "theory.exact.fixed_point",
    "24": "theory.exact.covariance",
    "25": "theory.exact.slopes",
    "26a": "theory.exact.step",
    "26b": "theory.exact.slopes",
    "27": "theory.exact.step",
    "28": "theory.exact.covariance",
    "29": "theory.exact.regression",
    "30": "theory.exact.sources",
    "31": "theory.exact.sources",
    "32": "theory.exact.sources",
    "34": "theory.exact.dyson",
    "35": "theory.exact.covariance",
    "36": "theory.spectra",
    "37": "theory.exact.columns",
    "38": "theory.exact.step",
    "39": "theory.exact.columns",
    "40": "theory.exact.regression",
    "40b": "theory.exact.columns",
    "41": "theory.exact.step",
    "42": "theory.exact.step",
    "43": "theory.exact.columns",
    "44": "theory.exact.columns",
    "46": "theory.exact.dyson",  # `special`, of which (24) and (34) are cases
    "47": "theory.exact.covariance",
    "48": "theory.exact.covariance",
    "49": "theory.exact.regression",
    "51": "theory.exact.columns",
}

_CITED = re.compile(r"\(eqs?\. ([^()]*)\)")
_RANGE = re.compile(r"(\d+)(?:–| to )(\d+)")


def tags() -> list[str]:
    """Numbers of the equations, in the order of the page."""
    return re.findall(r"\\tag\{(\w+)\}", (ROOT / "docs" / "theory.md").read_text())


def docstrings() -> Iterator[tuple[str, str]]:
    """`module:function` and docstring of every function, method and class of the package."""
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for name, text in _inside(ast.parse(path.read_text()), ""):
            yield f"{module}:{name}", text


def _inside(node: ast.AST, prefix: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            yield prefix + child.name, ast.get_docstring(child) or ""
            yield from _inside(child, f"{prefix}{child.name}.")


def claimed(docstring: str) -> set[str]:
    """Numbers whose home a docstring says to be."""
    found: set[str] = set()
    for cited in _CITED.findall(docstring.split("\n\n")[0].replace("\n", " ")):
        for first, last in _RANGE.findall(cited):
            found |= {str(number) for number in range(int(first), int(last) + 1)}
        found |= set(re.findall(r"\d+[a-z]?", cited))
    return found
