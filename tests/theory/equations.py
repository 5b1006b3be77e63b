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
    "6": "theory.labels:label_moments",
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

# Number → where in theory/ it is computed; it moves to HOMES when a docstring there says so, or to
# NOT_COMPUTED. (24) and (34) are cases of (46) and (47), which is what the code has.
TO_ASSIGN = {
    "5": "exact.columns:build_columns",
    "7": "exact.fixed_point:Evaluation.mapped_chi",
    "8": "exact.fixed_point:evaluate",
    "9": "isotropic: (22) with φ0 → 0 stands in its place",
    "10": "isotropic: (23) stands in its place",
    "11": "isotropic: (29) stands in its place",
    "12": "exact.regression:misfit",
    "13": "exact.errors",
    "14": "exact.errors",
    "15": "exact.errors",
    "16": "spectra",
    "17": "spectra",
    "18": "spectra",
    "19": "exact.step:Slopes",
    "21": "exact.step:build_step",
    "22": "exact.dyson:scattering, or exact.fixed_point:evaluate",
    "23": "exact.fixed_point:evaluate",
    "24": "exact.covariance:covariance",
    "25": "exact.step:Slopes",
    "26a": "exact.step:build_step",
    "26b": "exact.step:Slopes",
    "27": "exact.step:_norm_variance",
    "28": "exact.covariance:covariance",
    "29": "exact.regression:fit",
    "30": "exact.errors",
    "31": "exact.solve: the self-check",
    "32": "exact.errors: its adjoint",
    "34": "exact.dyson:special",
    "35": "exact.covariance:Covariance.total",
    "36": "spectra",
    "37": "exact.columns:_means",
    "38": "exact.step:build_step",
    "39": "exact.columns:build_columns",
    "40": "exact.regression:field_covariance",
    "40b": "exact.columns:_bend",
    "41": "exact.step:rows_of",
    "42": "exact.step:_own_output",
    "43": "exact.columns:own_direction",
    "44": "exact.columns:build_columns",
    "46": "exact.dyson:special",
    "47": "exact.covariance:covariance",
    "48": "exact.covariance:_star",
    "49": "exact.regression:gram",
    "51": "exact.columns:_means",
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
