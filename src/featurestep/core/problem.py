"""The problem: a frozen description of one experiment, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ..conventions import RATIOS, refuse, sizes_at_ratios, sizes_by_letter
from ..functions.activations import resolve
from ..functions.nonlinearity import Nonlinearity, UserFunction, coefficients
from ..functions.readout import Law, freeze_law, resolve_law
from ..functions.targets import AlignedTarget, Teacher, mean_sign, resolve_target
from .checks import listed, non_negative, number, one_of, positive, rounded, whole_number
from .covariance import (
    InputCovariance,
    TargetLaw,
    freeze_covariance,
    freeze_direction,
    freeze_mass,
    resolve_covariance,
    target_law,
)
from .errors import InvalidProblem
from .grid import Grid as Grid
from .grid import unknown_field

RESIDUALS = ("labels", "full")
INITIALS = ("sphere", "gaussian")
ROWS = ("fresh", "half", "same")
BATCHES = ("fresh", "same")
BINARY_LOSSES = ("logistic", "squared_hinge", "hinge", "square_signs")  # of labels ±1
LOSSES = ("square", *BINARY_LOSSES, "huber")
RIDGE_RANGE = ("must be in [1e-15, 1e12]", lambda v: 1e-15 <= v <= 1e12)
NOISE_RANGE = ("must be at most 1e6", lambda v: v <= 1e6)
STEP_RANGE = ("must be at most 1e12", lambda v: v <= 1e12)
FLIP_RANGE = ("must be in [0, 0.5)", lambda v: 0 <= v < 0.5)
EXPONENT_RANGE = ("must be in [-4, 2]", lambda v: -4 <= v <= 2)
TARGET_RANGE = ("must be in [-10, 10]", lambda v: -10 <= v <= 10)
MAX_STEPS = 1000
_RARE_SIGN = 1e-6  # share of labels of one sign below which there is nothing to classify
_BOUNDARY_WIDTH = 1e-9  # exponents this near to the end of an interval count as on it
Spec = str | Nonlinearity | Teacher | Callable[..., Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """One gradient step of a two-layer network, then a fit of its readout, by ridge regression.

    A network f(x) = aᵀσ(Wx) of `width` neurons takes one step of size η on its first layer with
    `n_step` samples; its readout is then fitted on `n` fresh samples (theory, section 1), by ridge
    regression or with another convex `loss`. Several steps, rows that are used twice and inputs
    with a covariance are fields too; verbs that do not know them refuse them.

    activation, target
        A name (`tanh`, `relu`, …), a Hermite sum (`"H1 + 0.5*H2"`) or a vectorised callable. A
        target may also have several directions: a formula in z1, z2, z3 (`"z1 + z1*z2"`) or a
        `Teacher`.
    n, d, width
        Samples for the readout, input dimension, neurons.
    n_step
        Samples for the gradient step; `n` when not given.
    step_exponent, step_scale, or step_size
        η = step_scale · n^step_exponent, or η outright.
    ridge
        λ in (1/n)‖y − Fa‖² + λ‖a‖², or (λ/2)‖a‖² beside the mean of another loss.
    noise_std
        Standard deviation of the label noise.
    readout
        Law of the initial readout: `gaussian`, `rademacher`, `constant`, `uniform`, or a list of
        (value, probability) with mean square 1.
    residual
        `labels`: the step uses y; `full`: it uses y − f(x), the true gradient.
    initial
        Law of the first layer's rows at the start: `sphere` (uniform on the unit sphere) or
        `gaussian` (N(0, I/d), of norm 1 on average only).
    centre
        Subtract E σ(z) from the activation.
    loss
        Of the readout's fit: `square`, `huber`, or, for labels y = sign(σ⋆(β⋆·x) + ε), `logistic`,
        `squared_hinge`, `hinge` or `square_signs`, ½(y − f)² of these (theory, section 30).
    intercept
        Fit an intercept too, without penalty.
    flip
        Share of labels ±1 whose sign is changed at random.
    rows
        The readout is fitted on `fresh` rows, or on the `same` rows as the (first) step: then
        `n_step` is `n`. With `half`, half of the step's rows (⌊n_step/2⌋) are among the readout's
        n, and all others are used once.
    steps, or step_sizes
        A number of steps of size η each, or the sizes (η1, η2, …) of all steps. `step_sizes` of a
        problem is always the tuple of all sizes, and `step_size` the first of them.
    batches
        The steps after the first take `fresh` batches of `n_step` samples, or the `same` again.
    covariance
        Σ of the inputs: `"power(a)"` (eigenvalue i ∝ i^(−a)), a list of (eigenvalue, share), a
        list of eigenvalues, each for an equal share of the coordinates, or a matrix (d, d).
        Divided by its mean eigenvalue, `input_covariance.factor`. The target is σ⋆ of β⋆·x, of
        variance 1.
    target_exponent, target_mass or target_direction
        Where Σ^½β⋆ points: its mass along an eigenvector is ∝ eigenvalue^(1 + target_exponent),
        by default that of a random β⋆; or its mass in each class (of sum 1); or β⋆ itself, as a
        vector or as the number of an eigenvector, 1 that of the largest eigenvalue (without a
        covariance the number of a coordinate).
    """

    activation: Spec = "tanh"
    target: Spec = "tanh"
    n: int
    d: int
    width: int
    n_step: int = None  # type: ignore[assignment]  # n when not given
    step_exponent: float | None = None
    step_scale: float = 1.0
    step_size: float = None  # type: ignore[assignment]  # from the exponent when not given
    ridge: float
    noise_std: float = 0.0
    readout: Any = "gaussian"
    residual: str = "labels"
    initial: str = "sphere"
    centre: bool = False
    loss: str = "square"
    intercept: bool = False
    flip: float = 0.0
    rows: str = "fresh"
    steps: int = 1
    step_sizes: tuple[float, ...] = ()  # all of one size when not given
    batches: str = "fresh"
    covariance: Any = None
    target_exponent: float = 0.0
    target_mass: tuple[float, ...] | None = None
    target_direction: int | tuple[float, ...] | None = None
    given: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.readout, (str, Law)):
            self._put("readout", freeze_law(self.readout))
        self._put("step_sizes", _listed_sizes(self.step_sizes))
        for name, freeze in _FROZEN.items():
            if getattr(self, name) is not None:
                self._put(name, freeze(getattr(self, name)))
        self._put("given", MappingProxyType({name: getattr(self, name) for name in FIELDS}))
        for name in ("n", "d", "width"):
            self._put(name, whole_number(name, getattr(self, name)))
        self._put("n_step", _batch_of(self.given, self.n))
        self._put("ridge", _ridge(self.ridge))
        noise = number("noise_std", non_negative("noise_std", self.noise_std), *NOISE_RANGE)
        self._put("noise_std", noise)
        for name, value in _steps_of(self.given, self.n).items():
            self._put(name, value)
        for name, kinds in _WORDS.items():
            one_of(name, getattr(self, name), kinds)
        for name in ("centre", "intercept"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InvalidProblem(name, "must be True or False", getattr(self, name))
        self._put("flip", number("flip", self.flip, *FLIP_RANGE))
        _check_functions(self)
        _check_loss(self)
        _check_target(self)

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @cached_property
    def sigma(self) -> Nonlinearity:
        """The activation σ, centred if asked."""
        sigma = resolve(self.activation, "activation")
        return _subtract_mean(sigma) if self.centre else sigma

    @cached_property
    def sigma_star(self) -> Nonlinearity:
        """The target's function σ⋆; InvalidProblem if the target has several directions."""
        found = self._resolved_target
        if isinstance(found, Teacher):
            rule = "must have one direction here: there is no theory for several"
            raise InvalidProblem("target", rule, self.target)
        return found

    @cached_property
    def teacher(self) -> Teacher | None:
        """The target if it has several directions, else None."""
        found = self._resolved_target
        return found if isinstance(found, Teacher) else None

    @cached_property
    def _resolved_target(self) -> Nonlinearity | Teacher:
        return resolve_target(self.target)

    @cached_property
    def star(self) -> Nonlinearity | AlignedTarget:
        """E[y|x] in the theory's form: σ⋆, or for several directions the basis of eq. 45.

        For labels ±1 the mean label, a function of β⋆·x.
        """
        if self.is_binary:
            return mean_sign(self.sigma_star, self.noise_std, self.flip)
        return self.sigma_star if self.teacher is None else self.teacher.aligned()

    @property
    def is_binary(self) -> bool:
        """True if labels are ±1."""
        return self.loss in BINARY_LOSSES

    @property
    def has_square_loss(self) -> bool:
        """True if the readout is fitted by ridge regression, without intercept."""
        return self.loss == "square" and not self.intercept

    @cached_property
    def label_variance(self) -> float:
        """E Var[y|x]: that of the noise, or of labels ±1 around their mean."""
        if self.is_binary:
            return max(1.0 - self.star.second_moment, 0.0)
        return self.noise_std**2

    @property
    def directions(self) -> int:
        """r, the number of the target's directions."""
        return 1 if self.teacher is None else self.teacher.directions

    @cached_property
    def law(self) -> Law:
        """The readout law."""
        return resolve_law(self.readout)

    @cached_property
    def input_covariance(self) -> InputCovariance | None:
        """Σ in classes of eigenvalues, normalised; None for isotropic inputs."""
        return None if self.covariance is None else resolve_covariance(self.covariance, self.d)

    @cached_property
    def target_law(self) -> TargetLaw:
        """Where Σ^½β⋆ points."""
        covariance = self.input_covariance or resolve_covariance((1.0,), self.d)
        return target_law(covariance, self.target_exponent, self.target_mass, self.target_direction)

    @property
    def phi(self) -> float:
        """φ = d/n."""
        return self.d / self.n

    @property
    def psi(self) -> float:
        """ψ = d/N."""
        return self.d / self.width

    @property
    def phi_step(self) -> float:
        """φ0 = d/n_step."""
        return self.d / self.n_step

    @property
    def shared_rows(self) -> int:
        """How many of the (first) step's rows are among the readout's."""
        return {"fresh": 0, "half": self.n_step // 2, "same": self.n_step}[self.rows]

    @property
    def regime(self) -> Regime:
        """The published interval in which the step's exponent lies."""
        exponent = self.step_exponent
        if exponent is None:
            exponent = (
                math.log(self.step_size) / math.log(self.n)
                if self.step_size > 0 < self.n - 1
                else None
            )
        return regime_of(exponent, at_size=self.n if self.step_exponent is None else None)

    @property
    def degree(self) -> int | None:
        """The degree ℓ of the regime; None at an end of an interval and at or above 1/2."""
        return self.regime.degree

    def replace(self, **changes: Any) -> Problem:
        """The same problem with some fields changed.

        A ratio sets the size it is named for: `phi` n = d/φ (or, with `n`, d = φ·n), `psi`
        width = d/ψ, `phi_step` n_step = d/φ0.
        """
        unknown = set(changes) - {*FIELDS, *RATIOS}
        if unknown:
            raise unknown_field(sorted(unknown)[0], FIELDS)
        if changes.keys() == {"ridge"}:
            return self._at_ridge(changes["ridge"])
        if not changes.keys().isdisjoint(RATIOS):
            changes = sizes_at_ratios(self.d, changes)
        given = dict(self.given)
        if changes.get("step_sizes"):
            given.update(step_exponent=None, step_scale=1.0, step_size=None, steps=1)
        if "step_size" in changes and changes["step_size"] is not None:
            given.update(step_exponent=None, step_scale=1.0)
        elif changes.get("step_exponent") is not None:
            given["step_size"] = None
        return Problem(**{**given, **changes})

    def without_zero_steps(self) -> Problem:
        """The same without those of several steps that have size zero: they change no weights."""
        sizes = tuple(size for size in self.step_sizes if size > 0.0)
        if self.steps == 1 or len(sizes) == self.steps:
            return self
        return self.replace(step_sizes=sizes or (0.0,))

    def _at_ridge(self, ridge: float) -> Problem:
        """The same at another ridge, on which no other field and no check depends."""
        found = object.__new__(Problem)
        found.__dict__.update(self.__dict__)
        found._put("given", MappingProxyType({**self.given, "ridge": ridge}))
        found._put("ridge", _ridge(ridge))
        return found

    def vary(self, **axes: Any) -> Grid:
        """The grid of all combinations of the given values, in the order given.

        Ratios vary like fields, and a single ratio is held at every point:
        `vary(psi=[0.5, 1, 2])`, `vary(n=[500, 1000, 2000], phi=0.5, psi=0.7)`.
        """
        grid = Grid(self, axes, FIELDS)
        if not grid.axes:
            raise InvalidProblem("vary", "needs at least one field", "none")
        return grid

    @classmethod
    def from_ratios(
        cls, *, phi: float, psi: float, n: int, phi_step: float | None = None, **rest: Any
    ) -> Problem:
        """Sizes from φ = d/n, ψ = d/N (and φ0 = d/n_step), rounded to whole numbers."""
        refuse(rest, ("d", "width"), "is set by phi and psi")
        ratios = {"phi": phi, "psi": psi} | ({} if phi_step is None else {"phi_step": phi_step})
        return cls(**sizes_at_ratios(None, {**rest, "n": whole_number("n", n), **ratios}))

    @classmethod
    def from_cui(
        cls,
        *,
        alpha: float,
        alpha0: float,
        width_ratio: float = 1.0,
        eta_tilde: float,
        lambda_: float,
        d: int,
        **rest: Any,
    ) -> Problem:
        """The conventions of Cui et al.: α = n/d, α0 = n0/d, N/d, η̃ and their λ.

        Their features are divided by √N and their penalty is not divided by n, so that
        ridge = λ·N/n; their η̃ is η·a_j of the constant law, so that η = η̃·√N.
        """
        names = ("n", "n_step", "width", "ridge", "step_size", "step_exponent")
        refuse(rest, names, "is set by the ratios of this convention")
        d = whole_number("d", d)
        n, n_step, width = (
            rounded(name, f"{size} = {name}·d", positive(name, ratio) * d)
            for name, size, ratio in (
                ("alpha", "n", alpha),
                ("alpha0", "n_step", alpha0),
                ("width_ratio", "width", width_ratio),
            )
        )
        ridge = positive("lambda_", lambda_) * width / n
        step = non_negative("eta_tilde", eta_tilde) * math.sqrt(width)
        sizes = {"n": n, "d": d, "width": width, "n_step": n_step}
        return cls(**{"readout": "constant", **rest, **sizes, "ridge": ridge, "step_size": step})

    @classmethod
    def from_moniri(
        cls, *, n: int, d: int, N: int, alpha: float, lambda_: float, **rest: Any
    ) -> Problem:
        """The symbols of Moniri et al.: η = n^α, a_j ~ N(0, 1/N), n samples for either half."""
        sizes = sizes_by_letter(n, d, N, rest)
        return cls(**rest, **sizes, step_exponent=alpha, ridge=positive("lambda_", lambda_))

    @classmethod
    def from_ba(cls, *, n: int, d: int, N: int, eta: float, lambda_: float, **rest: Any) -> Problem:
        """The conventions of Ba et al.: f = aᵀσ(Wx)/√N, a step η√N·G, the penalty (λ/N)‖a‖².

        G is the gradient of (1/2n)‖y − f‖²; with (1/n)‖y − f‖², double η. Rows start as N(0, I/d).
        The √N of their step cancels that of the network, and a/√N takes the place of a, so that η
        and λ stay as they are. Their initial output is of order 1/√N: the residual is the labels.
        """
        sizes = sizes_by_letter(n, d, N, rest, "residual", "initial")
        step, ridge = non_negative("eta", eta), positive("lambda_", lambda_)
        return cls(**rest, **sizes, step_size=step, ridge=ridge, initial="gaussian")

    def _key(self) -> tuple[Any, ...]:
        return tuple(self.given[name] for name in FIELDS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{f.name}={self.given[f.name]!r}"
            for f in fields(self)
            if f.name in FIELDS and (f.name in _REQUIRED or self.given[f.name] != f.default)
        )
        return f"Problem({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Problem, **self.given), ()


FIELDS = tuple(f.name for f in fields(Problem) if f.init)
_REQUIRED = ("n", "d", "width", "ridge")
_FROZEN = {  # in a form that can be hashed, where they are given
    "covariance": freeze_covariance,
    "target_mass": freeze_mass,
    "target_direction": freeze_direction,
}
_WORDS: Mapping[str, tuple[str, ...]] = {
    "residual": RESIDUALS,
    "initial": INITIALS,
    "loss": LOSSES,
    "rows": ROWS,
    "batches": BATCHES,
}


@lru_cache(maxsize=256)
def _subtract_mean(sigma: Nonlinearity) -> Nonlinearity:
    return sigma.centred()


def _batch_of(given: Mapping[str, Any], n: int) -> int:
    """Samples of a step: n when not given, and where the readout's rows are the step's."""
    if given["n_step"] is None:
        return n
    size = whole_number("n_step", given["n_step"])
    if given["rows"] == "same" and size != n:
        raise InvalidProblem("n_step", f"must be n = {n} with rows same", size)
    if given["rows"] == "half" and size > 2 * n:
        raise InvalidProblem("n_step", f"must be at most 2n = {2 * n} with rows half", size)
    return size


def _listed_sizes(sizes: Any) -> tuple[float, ...]:
    """The given sizes of all steps; empty when not given."""
    if sizes is None or (isinstance(sizes, tuple) and not sizes):
        return ()
    values = listed("step_sizes", sizes)
    if len(values) > MAX_STEPS:
        raise InvalidProblem("step_sizes", f"must be at most {MAX_STEPS}", len(values))
    return tuple(
        number("step_sizes", non_negative("step_sizes", value), *STEP_RANGE) for value in values
    )


def _ridge(ridge: float) -> float:
    return number("ridge", positive("ridge", ridge), *RIDGE_RANGE)


def _steps_of(given: Mapping[str, Any], n: int) -> dict[str, Any]:
    """The fields of all steps, checked."""
    steps, sizes = whole_number("steps", given["steps"]), given["step_sizes"]
    if steps > MAX_STEPS:
        raise InvalidProblem("steps", f"must be at most {MAX_STEPS}", steps)
    if not sizes:
        one = _step_of(given, n)
        return {**one, "steps": steps, "step_sizes": (one["step_size"],) * steps}
    for name in ("step_size", "step_exponent"):
        if given[name] is not None:
            raise InvalidProblem("step_sizes", f"must not be given together with {name}", sizes)
    if given["step_scale"] != 1.0:
        rule = "can only be given with step_exponent, not with step_sizes"
        raise InvalidProblem("step_scale", rule, given["step_scale"])
    if steps not in (1, len(sizes)):
        raise InvalidProblem("steps", f"must be left out: step_sizes has {len(sizes)}", steps)
    return {"steps": len(sizes), "step_sizes": sizes, "step_size": sizes[0]}


def _step_of(given: Mapping[str, Any], n: int) -> dict[str, float]:
    """One step's fields, checked: η = step_scale·n^step_exponent, or η itself."""
    size, exponent = given["step_size"], given["step_exponent"]
    scale = positive("step_scale", given["step_scale"])
    if size is not None:
        if exponent is not None:
            rule = "must not be given together with step_exponent"
            raise InvalidProblem("step_size", rule, (size, exponent))
        if scale != 1.0:
            rule = "can only be given with step_exponent, not with step_size"
            raise InvalidProblem("step_scale", rule, scale)
        size = number("step_size", non_negative("step_size", size), *STEP_RANGE)
        return {"step_scale": scale, "step_size": size}
    if exponent is None:
        raise InvalidProblem("step_exponent", "or step_size must be given", None)
    exponent = number("step_exponent", exponent, *EXPONENT_RANGE)
    size = min(scale, 1e100) * math.pow(n, exponent)
    size = number("step_scale", size, "must give a step size of at most 1e12", STEP_RANGE[1])
    return {"step_scale": scale, "step_exponent": exponent, "step_size": size}


def _check_functions(problem: Problem) -> None:
    """Refuse functions with which there is nothing to learn, to fit, or to step along."""
    sigma, law = problem.sigma, problem.law
    teacher = problem.teacher
    zero = problem.sigma_star.second_moment <= 0.0 if teacher is None else teacher.is_zero
    if zero and problem.noise_std == 0:
        raise InvalidProblem("target", "must not be zero when noise_std is 0", problem.target)
    if sigma.second_moment <= 0:
        raise InvalidProblem("activation", "must not be zero", problem.activation)
    c = coefficients(sigma, 2)
    if any(problem.step_sizes) and c[1] == 0.0:
        rule = "must have c_1 = E[zσ(z)] ≠ 0 when the step is not 0, or the step learns nothing"
        raise InvalidProblem("activation", rule, problem.activation)
    if problem.residual == "full" and c[0] != 0.0 and abs(law.mean) > 1e-12:
        rule = (
            "'full' needs a centred activation (centre=True) when the readout law has mean "
            f"{law.mean:.3g}, or the initial output grows with the width"
        )
        raise InvalidProblem("residual", rule, problem.residual)
    if isinstance(sigma, UserFunction):
        _check_slope(sigma)


def _check_loss(problem: Problem) -> None:
    """Refuse combinations of loss, labels and target that are not known or mean nothing."""
    if problem.flip and not problem.is_binary:
        rule = f"must be 0 unless labels are signs (loss {', '.join(BINARY_LOSSES)})"
        raise InvalidProblem("flip", rule, problem.flip)
    if problem.has_square_loss:
        return
    what = f"loss {problem.loss}" if problem.loss != "square" else "an intercept"
    if problem.teacher is not None:
        raise InvalidProblem("target", f"must have one direction with {what}", problem.target)
    if problem.is_binary:
        share = mean_sign(problem.sigma_star, problem.noise_std, 0.0).share
        if min(share, 1.0 - share) < _RARE_SIGN:
            rule = f"must give labels of both signs with {what}"
            raise InvalidProblem("target", rule, problem.target)


def _check_target(problem: Problem) -> None:
    """Refuse a covariance that does not fit d, and a target that does not fit the covariance."""
    number("target_exponent", problem.target_exponent, *TARGET_RANGE)
    given = {
        "target_exponent": problem.target_exponent != 0.0,
        "target_mass": problem.target_mass is not None,
        "target_direction": problem.target_direction is not None,
    }
    chosen = [name for name, is_given in given.items() if is_given]
    if len(chosen) > 1:
        rule = f"must not be given together with {chosen[1]}"
        raise InvalidProblem(chosen[0], rule, getattr(problem, chosen[0]))
    if problem.covariance is None and chosen and chosen != ["target_direction"]:
        raise InvalidProblem(chosen[0], "needs a covariance", getattr(problem, chosen[0]))
    if problem.target_direction is not None and problem.directions > 1:
        rule = "must be left out for a target of several directions"
        raise InvalidProblem("target_direction", rule, problem.target_direction)
    if problem.covariance is not None or chosen:
        _ = problem.target_law  # refused here, if at all


@lru_cache(maxsize=256)
def _check_slope(sigma: UserFunction) -> None:
    """Refuse a derivative with E σ′ ≠ E[zσ]: it is wrong, or σ has a jump."""
    slope, expected = sigma.mean_slope, coefficients(sigma, 1)[1]
    if not abs(slope - expected) <= 1e-6 * math.sqrt(sigma.second_moment):
        raise InvalidProblem(
            "activation",
            f"must be continuous and match its derivative (E[zσ] = {expected:.6g} = E σ′)",
            f"E σ′ = {slope:.6g}",
        )


@dataclass(frozen=True)
class Regime:
    """The interval of a step exponent: the degree ℓ, or None, and the reason in words."""

    exponent: float | None
    degree: int | None
    text: str

    def __str__(self) -> str:
        return self.text


def interval(degree: int) -> tuple[float, float]:
    """Open interval ((ℓ−1)/2ℓ, ℓ/(2ℓ+2)) of exponents with ℓ learned degrees."""
    if degree == 0:
        return -math.inf, 0.0
    return (degree - 1) / (2 * degree), degree / (2 * degree + 2)


def regime_of(exponent: float | None, *, at_size: int | None = None) -> Regime:
    """The regime of η = n^exponent; None stands for a step of size 0."""
    if exponent is None:
        return Regime(None, 0, "step size 0: the untrained network (degree 0)")
    name = f"step exponent {exponent:.6g}"
    if at_size is not None:
        name += f" (of the given step size, at n = {at_size})"
    if exponent < -_BOUNDARY_WIDTH:
        return Regime(exponent, 0, f"{name} is below 0: nothing is learned (degree 0)")
    if exponent >= 0.5 - _BOUNDARY_WIDTH:
        where = (
            "is the maximal step"
            if exponent <= 0.5 + _BOUNDARY_WIDTH
            else "is beyond the maximal step"
        )
        text = f"{name} {where} 1/2: every degree is learned in part; the degree is undefined"
        return Regime(exponent, None, text)
    ratio = 1.0 / (1.0 - 2.0 * exponent)  # ℓ at the lower end of its interval
    nearest = max(1, round(ratio))
    if abs(exponent - interval(nearest)[0]) <= _BOUNDARY_WIDTH:
        text = (
            f"{name} is the boundary between degree {nearest - 1} and degree {nearest}: "
            "the new spike is partly formed and the degree is undefined"
        )
        return Regime(exponent, None, text)
    degree = math.floor(ratio)
    low, high = interval(degree)
    return Regime(exponent, degree, f"{name} is in ({low:.4g}, {high:.4g}): degree {degree}")
