"""The panels' numbers, from the engine, as plain data: what a worker computes for a state."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.errors import FeaturestepError, InvalidProblem, NotConverged
from ..core.problem import Problem, interval
from ..core.results import departing, require_known, status_of
from ..core.spiked import spiked_weights
from ..core.types import FloatArray
from ..functions.nonlinearity import normalised_hermite
from ..functions.quadrature import gauss_hermite
from ..theory import Limit, LossPrediction, Prediction, limit
from ..theory.baselines import baselines, baselines_given, kernel_error, tuned_ridge, untrained
from ..theory.limits import spike_functions
from ..theory.predict import predict, require_predictable, solve
from ..theory.prediction import LearnedFunction, Outcome
from ..theory.resolution import Effort
from ..theory.reuse.solve import require_known_rows
from ..theory.spectra import DRAFT, Spectrum, Spike, solve_spectrum
from ..theory.spectra import spectrum as predict_spectrum
from ..theory.validity import prediction_notes
from .state import PageState, axis, errors, grid, spectrum_axes
from .words import DEGREES

STAIRS, ROUGH_STAIRS = 8, 3  # regimes drawn, in full and as a draft: beyond, they are narrow
Data = dict[str, Any]
_ROUGH = Effort(groups=0.4, nodes=0.6, slack=1e8, residuals=0.72, alike=True)  # of up to 0.4 %
_KAPPA = np.linspace(-3.0, 3.0, 61)
_NO_ESTIMATES = ("logistic", "hinge")  # losses whose best output given κ is not E[y|κ]
BASELINES = ("untrained", "ridge_n_tuned", "best_given_direction", "noise_floor")


def point(state: PageState, *, draft: bool = False) -> Data:
    """The current point: its errors, what it has learned, and how far to trust it.

    A draft is the same, without the simpler predictors of another loss than the square: one
    prediction takes some milliseconds, and these a second. What a panel cannot show is named in
    `undrawn`, by the panel, with the reason.
    """
    problem = state.problem
    found = _predicted(problem)
    regime = problem.regime
    data = {
        **found.numbers,
        "beta_norm": found.beta_norm,
        "notes": list(found.notes),
        **{name: getattr(problem, name) for name in ("step_size", "n", "d", "width", "n_step")},
        "degree": regime.degree,
        "regime": regime.text,
        "is_binary": problem.is_binary,
        "baselines": _simpler(problem, draft=draft),
    }
    try:
        return {**data, **_along_direction(found)}
    except InvalidProblem:  # a target of several directions after several steps
        why = "After several steps the network has learned several directions of this target."
        return {**data, "degrees": [], "undrawn": dict.fromkeys(("learned", "degrees"), why)}


@lru_cache(maxsize=16)
def _predicted(problem: Problem) -> Prediction | LossPrediction:
    """Kept: what has no step is the same while the step moves."""
    found: Prediction | LossPrediction = predict(problem)
    return found


def _simpler(problem: Problem, *, draft: bool) -> Data:
    """Test errors of simpler predictors, as far as they are known for this problem."""
    if not (draft or problem.has_square_loss):
        return _loss_baselines(problem)
    still = _predicted(untrained(problem)).test_error
    if not problem.has_square_loss:
        return {"untrained": still}
    if problem.covariance is not None:  # ridge regression is known for isotropic inputs
        return {"untrained": still, "noise_floor": problem.noise_std**2}
    known = baselines_given(problem, still).as_dict()
    names = [name for name in BASELINES if problem.steps == 1 or name != "best_given_direction"]
    return {name: known[name] for name in names}


@lru_cache(maxsize=16)
def _loss_baselines(problem: Problem) -> Data:
    """Without a step, of the linear fit with its best ridge and the best of κ, and the least."""
    found = baselines(problem)
    names = ("untrained", "linear_n_tuned", "best_given_direction", "bayes_error")
    return {name: getattr(found, name) for name in names}


def _along_direction(found: Prediction | LossPrediction) -> Data:
    """What is learned of the learned direction, beside the best function of it."""
    problem = found.problem
    nodes, weight = gauss_hermite(120)
    learned = found.learned(np.concatenate([_KAPPA, nodes]))  # once: most of it is not per point
    data = {
        "kappa": _KAPPA.tolist(),
        "learned": learned[: _KAPPA.size].tolist(),
        "best": found.best_along(_KAPPA).tolist(),
    }
    if problem.loss in _NO_ESTIMATES:
        why = f"Not defined: with loss {problem.loss} the output does not estimate the labels."
        return {**data, "degrees": [], "undrawn": {"degrees": why}}
    degrees = _degrees(found, nodes, weight, learned[_KAPPA.size :])
    return {**data, "degrees": degrees, "undrawn": {}}


def _degrees(
    found: Prediction | LossPrediction,
    kappa: FloatArray,
    weight: FloatArray,
    learned: FloatArray,
) -> list[Data]:
    """Of each degree: how much E[y|κ] has, and how much M(κ), given on nodes."""
    basis = normalised_hermite(DEGREES, kappa) * weight  # (degrees, nodes)
    target, learned = basis @ found.target_along(kappa), basis @ learned
    return [
        {"degree": k, "target": float(target[k]), "learned": float(learned[k])}
        for k in range(1, DEGREES + 1)
    ]


def curve(state: PageState, *, draft: bool = False) -> Data:
    """Errors along the axis at finite n; away from the exponent also those of simpler predictors.

    A draft has a third of the points, and fewer groups of neurons than meet the eye.
    """
    problems = grid(state, draft=draft)
    require_predictable(problems)
    effort = _ROUGH if draft else None
    plain = not departing(problems)
    outcomes = solve(list(problems), effort=effort)
    refused = [outcome for outcome in outcomes if isinstance(outcome, FeaturestepError)]
    answer: Data = {
        "x": axis(state, problems).tolist(),
        **{name: _column(outcomes, name) for name in errors(state)},
        "refused": status_of(refused[0]) if refused else "",
    }
    if state.over != "exponent" and problems.base.step_size > 0:
        still = [untrained(problem) for problem in problems]
        answer["untrained"] = _column(solve(still, effort=effort), "test_error")
    if state.isotropic and plain and problems.base.directions == 1:
        answer["isotropic"] = _column(solve(list(problems), method="isotropic"), "test_error")
    if state.over == "samples" and departing(problems).keys() <= {"rows", "steps"}:
        answer |= _linear(list(problems))
    return answer


def _linear(problems: Sequence[Problem]) -> Data:
    """Test errors of the linear methods of a learning curve: their n are those of the curve."""
    rows: Data = {"ridge_n_tuned": [tuned_ridge(problem) for problem in problems]}
    with contextlib.suppress(InvalidProblem):  # the kernel's formula is for centred activations
        rows["kernel"] = [kernel_error(problem) for problem in problems]
    return rows


def _column(outcomes: Sequence[Outcome], name: str) -> list[float | None]:
    return [float(getattr(o, name)) if isinstance(o, LearnedFunction) else None for o in outcomes]


def stairs(state: PageState, *, draft: bool = False) -> list[Data]:
    """The limits n → ∞ of each regime of the step exponent, as published and with norm growth."""
    problem = state.problem.replace(step_exponent=0.25)
    found: dict[tuple[bool, tuple[int, ...]], Limit] = {}
    steps = []
    for degree in range(1, (ROUGH_STAIRS if draft else STAIRS) + 1):
        low, high = interval(degree)
        step: Data = {"degree": degree, "low": low, "high": high}
        for growth, prefix in ((True, ""), (False, "published_")):
            powers = tuple(spike_functions(problem, degree, norm_growth=growth))
            if (growth, powers) not in found:  # what learns nothing new has the limit before it
                found[growth, powers] = limit(problem, degree, norm_growth=growth)
            for name in ("test_error", "train_loss"):
                step[prefix + name] = getattr(found[growth, powers], name)
        steps.append(step)
    return steps


LATER = "this one takes longer: it is drawn when you stop moving the controls"
_POINTS = 160  # of the density's curve in full


def spectrum(state: PageState, *, draft: bool = False) -> Data:
    """Bulk and spikes of the features' singular values, in full, or as a draft.

    A state that has no prediction is refused as `point` refuses it; one that has a prediction, but
    no spectrum, by an error of another kind.
    """
    require_predictable(state.problem)
    if state.problem.shared_rows:
        require_known_rows(state.problem)
    try:
        require_known(state.problem, "spectrum", {"steps"}, {"rows"})
        found = _drafted(state) if draft else predict_spectrum(state.problem)
    except InvalidProblem as error:
        raise FeaturestepError(str(error)) from None
    return spectrum_data(state, found) | {"rough": draft and found.is_smoothed}


def _drafted(state: PageState) -> Spectrum:
    """A draft, as long as it follows a slider."""
    if state.steps > 1 or state.problem.shared_rows:
        raise NotConverged(LATER)
    try:
        return solve_spectrum(state.problem, DRAFT)[1]
    except NotConverged:
        raise NotConverged(LATER) from None


def spectrum_data(state: PageState, found: Spectrum) -> Data:
    """A spectrum as what the panel draws, with its axes, for which the server has no engine."""
    s, density = found.curve(_POINTS)
    return {
        "s": s.tolist(),
        "density": density.tolist(),
        "edges": [[float(np.sqrt(end)) for end in pair] for pair in found.edges],
        "atom": found.atom,
        "spikes": [_spike(spike) for spike in found.spikes],
        "notes": _own_notes(found),
        "axes": asdict(spectrum_axes(state)),
        "rough": False,  # whether it looks different from the full one
    }


def _spike(spike: Spike) -> dict[str, Any]:
    names = ("singular_value", "degree", "constant_overlap", "share")
    data = {name: getattr(spike, name) for name in names}
    return {**data, "overlaps": list(spike.overlaps), "resolved": bool(spike.resolved)}


def _own_notes(found: Spectrum) -> list[str]:
    """Notes that the prediction of the same problem does not have already."""
    told = prediction_notes(found.problem, spiked_weights(found.problem), "exact")
    return [note for note in found.notes if note not in told]
