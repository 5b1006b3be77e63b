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
    "5": "theory.exact.columns:build_columns",
    "6": "theory.labels:label_moments",
    "7": "theory.exact.fixed_point:Evaluation.mapped_chi",
    "8": "theory.exact.fixed_point:evaluate",
    "9": "theory.exact.dyson:solve_blocks",
    "10": "theory.exact.fixed_point:Evaluation.mapped_v2",
    "11": "theory.exact.regression:fit",
    "12": "theory.exact.regression:misfit",
    "13": "theory.exact.solve:SolvedNetwork.error",
    "14": "theory.exact.solve:_predictions",
    "15": "theory.exact.errors:solve_errors",
    "16": "theory.spectra.equations:Equations.trace",
    "17": "theory.spectra.spike_system:GroupsInBulk.matrix",
    "18": "theory.spectra.spikes:_outlier",
    "19": "theory.exact.step:_moved",
    "21": "theory.exact.step:_moved",
    "22": "theory.exact.fixed_point:Evaluation.mapped_xi",
    "23": "theory.exact.fixed_point:Evaluation.mapped_v2",
    "24": "theory.exact.dyson:covariance",
    "25": "theory.exact.step:_norm_constants",
    "26a": "theory.exact.step:_norm_constants",
    "26b": "theory.exact.step:_norm_constants",
    "27": "theory.exact.step:_norm_variance",
    "28": "theory.exact.dyson:covariance",
    "29": "theory.exact.regression:fit",
    "30": "theory.exact.errors:solve_errors",
    "31": "theory.prediction:checked",
    "32": "theory.exact.errors:solve_errors",
    "34": "theory.exact.dyson:directions_response",
    "35": "theory.exact.dyson:covariance",
    "36": "theory.spectra.spike_system:GroupsInBulk.matrix",
    "37": "theory.exact.columns:_means",
    "38": "theory.exact.step:_norm_constants",
    "39": "theory.exact.columns:build_columns",
    "40": "theory.exact.regression:field_covariance",
    "40b": "theory.exact.columns:_bend",
    "41": "theory.exact.step:rows_of",
    "42": "theory.exact.step:_own_output",
    "43": "theory.exact.step:_moved",
    "44": "theory.exact.columns:build_columns",
    "45": "theory.labels:target_values",
    "46": "theory.exact.dyson:directions_response",
    "47": "theory.exact.dyson:covariance",
    "48": "theory.exact.dyson:fields_on_directions",
    "49": "theory.exact.regression:gram",
    "50": "theory.labels:label_moments",
    "51": "theory.exact.columns:_means",
    "52": "theory.labels:left_by_kappa",
    "54": "theory.reuse.features:step_features",
    "55": "theory.reuse.features:step_features",
    "56": "theory.reuse.features:step_features",
    "57": "theory.reuse.readout:fit_system",
    "58": "theory.reuse.fixed_point:evaluate",
    "59": "theory.reuse.fixed_point:PencilEvaluation.mapped",
    "60": "theory.reuse.fixed_point:PencilEvaluation.mapped",
    "61": "theory.reuse.rows:step_rows",
    "62": "theory.reuse.readout:fit_system",
    "63": "theory.reuse.features:step_features",
    "64": "theory.reuse.features:_increments",
    "65": "theory.reuse.features:step_features",
    "66": "theory.reuse.readout:quadratic_terms",
    "66b": "theory.reuse.features:step_features",
    "67": "theory.reuse.readout:sample_norm_products",
    "68": "theory.reuse.solve:solve_errors",
    "69": "theory.reuse.solve:solve_errors",
    "71": "functions.targets:MeanSign.probability",
    "72": "theory.exact.convex:sides",
    "73": "theory.exact.convex:sides",
    "74": "theory.exact.losses:logistic_prox",
    "75": "theory.exact.convex:Sides.mass",
    "76": "theory.exact.convex:newton_readout",
    "77": "theory.exact.convex:newton_readout",
    **{str(number): "theory.exact.convex:mapped" for number in range(79, 84)},
    "84": "theory.exact.convex:Sides.measured",
    "85": "theory.exact.convex:Sides.measured",
    "87": "theory.exact.losses:SquaredHinge",
    "88": "theory.exact.losses:smoothed",
    "90": "theory.exact.inputs:input_moments",
    "91": "core.spiked:spiked_weights",
    "92": "theory.exact.step:_moved",
    "93": "theory.exact.step:_norms",
    "94": "theory.exact.dyson:class_blocks",
    "95": "theory.exact.dyson:bulk_blocks",
    "96": "theory.exact.dyson:directions_response",
    "97": "theory.exact.dyson:covariance",
    "98": "theory.exact.dyson:covariance",
    "99": "theory.exact.inputs:beside_variance",
    "100": "theory.exact.step:_norm_constants",
    "101": "theory.exact.step:_norm_constants",
    "102": "theory.exact.step:_norm_variance",
    "103": "theory.exact.inputs:coherent_norms",
    "104": "theory.exact.inputs:norm_products",
    "105": "theory.exact.regression:field_covariance",
    "106": "theory.exact.dyson:covariance",
    "107": "theory.exact.dyson:covariance_without_readout",
    "108": "theory.exact.columns:_class_bend",
    "108b": "theory.exact.inputs:trace_products",
    "109": "theory.exact.inputs:class_variances",
    "110": "theory.exact.products:pair_sector",
    "111": "theory.exact.products:direction_overlaps",
    "112": "theory.exact.products:ClassBlock.covariance",
    "113": "theory.exact.products:ClassBlock.means",
    "115": "theory.exact.inputs:split_rows",
    "114": "theory.exact.inputs:largest_share",
    "116": "theory.exact.visible:conditioned_law",
    "117": "theory.exact.visible:visible_step",
    "118": "theory.exact.visible:_shifts",
    "119": "theory.exact.visible:_given_loading",
    "120": "theory.exact.columns:build_columns",
    "121": "theory.exact.solve:SolvedNetwork._at",
    "122": "theory.exact.products:own_scale",
    "123": "theory.exact.inputs:sample_radius",
    "124": "theory.exact.products:eigenvalue_nodes",
    "125": "theory.exact.products:block_power",
    "126": "theory.exact.columns:ShownAtNorms.of",
    "130": "theory.exact.degrees:averages_of",
    "131": "theory.exact.sectors:SectorsAt",
    "132": "theory.exact.sectors:SectorsAt.response",
    "133": "theory.exact.sectors:SectorsAt.degrees",
    "134": "theory.exact.degrees:dimension",
    **{str(number): "theory.exact.degrees:Tables" for number in (135, 136, 137)},
    "138": "theory.exact.sectors:MixedAt",
    "139": "theory.exact.degrees:higher_fields",
    **{str(n): "theory.exact.degrees:FieldColumns" for n in (140, 141, 142, 150)},
    "151": "theory.exact.degrees:own_shift",
    "143": "theory.exact.step:_of_rows",
    "144": "theory.exact.sectors:_Series",
    "145": "theory.exact.sectors:_gauss_nodes",
    "146": "theory.exact.sectors:_special",
    "147": "theory.exact.degrees:pair_blocks",
    "148": "theory.exact.regression:QuadraticBlock.square",
    "149": "theory.exact.degrees:NormsInBlock.covariance",
    "152": "theory.exact.regression:InfluenceAcross",
    "160": "theory.several_steps.tables:slope_tables",
    "161": "theory.several_steps.batches:make_step",
    "162": "theory.several_steps.batches:_Vectors.products",
    "163": "theory.several_steps.batches:_norms",
    "164": "theory.several_steps.batches:_frame",
    "165": "theory.several_steps.batches:_frame",
    "166": "theory.several_steps.batches:make_step",
    "167": "theory.several_steps.chain:t_matrix",
    "168": "theory.several_steps.chain:solve_links",
    "169": "theory.several_steps.fixed_point:StepsEquations.image",
    "170": "theory.several_steps.directions:covariance",
    "171": "theory.several_steps.directions:_with_own_effect",
    "172": "theory.several_steps.directions:_new_vectors",
    "173": "theory.several_steps.batches:_norm_functions",
    "174": "theory.several_steps.batches:_norm_variance",
    "175": "theory.several_steps.directions:Change._to_fields",
    "176": "theory.several_steps.directions:Change._to_fields",
    "177": "theory.several_steps.batches:_moved_axes",
    "178": "theory.several_steps.directions:Change.energy",
    "179": "theory.several_steps.directions:_with_energy",
    "180": "theory.several_steps.readout:build_columns",
    "181": "theory.several_steps.batches:trace_products",
}

# Number → why there is no function for it.
NOT_COMPUTED = {
    "20": "the weights of single neurons: simulations draw them, the theory needs their law (21)",
    "33": "the limit n_step/d → ∞, which the tests solve on their own",
    "53": "the same for several directions",
    "70": "what is minimised: simulations minimise it, the theory has its stationary point",
    "78": "the potential whose stationary point (72)–(83) are",
    "86": "the check of the adjoint pass, made by the tests",
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
