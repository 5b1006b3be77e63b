"""The problem: a frozen, validated description of one experiment, and grids over its fields."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from .activations import resolve
from .errors import InvalidProblem
from .hermite import coefficients
from .nonlinearity import Nonlinearity, UserFunction
from .readout import Law, freeze_law, resolve_law
from .regime import Regime, regime_of

RESIDUALS = ("labels", "full")
MAX_SIZE = 10**15
Spec = str | Nonlinearity | Callable[..., Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """One gradient step of a two-layer network, then ridge regression on its readout.

    A network f(x) = aᵀσ(Wx) of `width` neurons takes one step of size η on its first layer with
    `n_step` samples; its readout is then fitted by ridge regression on `n` fresh samples
    (theory, section 1).

    activation, target
        A name (`tanh`, `relu`, …), a Hermite sum (`"H1 + 0.5*H2"`) or a vectorised callable.
    n, d, width
        Samples for the readout, input dimension, neurons.
    n_step
        Samples for the gradient step; `n` when not given.
    step_exponent, step_scale, or step_size
        η = step_scale · n^step_exponent, or η outright.
    ridge
        λ in (1/n)‖y − Fa‖² + λ‖a‖².
    noise_std
        Standard deviation of the label noise.
    readout
        Law of the initial readout: `gaussian`, `rademacher`, `constant`, `uniform`, or a list of
        (value, probability) with mean square 1.
    residual
        `labels`: the step uses y; `full`: it uses y − f(x), the true gradient.
    centre
        Subtract E σ(z) from the activation.
    """

    activation: Spec = "tanh"
    target: Spec = "tanh"
    n: int
    d: int
    width: int
    n_step: int | None = None
    step_exponent: float | None = None
    step_scale: float = 1.0
    step_size: float | None = None
    ridge: float
    noise_std: float = 0.0
    readout: Any = "gaussian"
    residual: str = "labels"
    centre: bool = False
    given: Mapping[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        if not isinstance(self.readout, (str, Law)):
            put("readout", freeze_law(self.readout))
        put("given", MappingProxyType({name: getattr(self, name) for name in FIELDS}))
        for name in ("n", "d", "width"):
            put(name, _size(name, getattr(self, name)))
        put("n_step", self.n if self.n_step is None else _size("n_step", self.n_step))
        put("ridge", _number("ridge", self.ridge, "must be > 0", lambda v: v > 0))
        put("noise_std", _number("noise_std", self.noise_std, "must be >= 0", lambda v: v >= 0))
        put("step_size", self._resolve_step())
        if self.residual not in RESIDUALS:
            raise InvalidProblem(
                "residual", f"must be one of {', '.join(RESIDUALS)}", self.residual
            )
        if not isinstance(self.centre, (bool, np.bool_)):
            raise InvalidProblem("centre", "must be True or False", self.centre)
        self._check_functions()

    def _resolve_step(self) -> float:
        scale = _number("step_scale", self.step_scale, "must be > 0", lambda v: v > 0)
        object.__setattr__(self, "step_scale", scale)
        if self.step_size is not None:
            if self.step_exponent is not None:
                raise InvalidProblem(
                    "step_size",
                    "must not be given together with step_exponent",
                    (self.step_size, self.step_exponent),
                )
            if scale != 1.0:
                raise InvalidProblem(
                    "step_scale", "goes with step_exponent, not with step_size", scale
                )
            return _number("step_size", self.step_size, "must be >= 0", lambda v: v >= 0)
        if self.step_exponent is None:
            raise InvalidProblem("step_exponent", "or step_size must be given", None)
        rule = "must be in [-4, 2]"
        exponent = _number("step_exponent", self.step_exponent, rule, lambda v: -4 <= v <= 2)
        object.__setattr__(self, "step_exponent", exponent)
        return scale * float(self.n) ** exponent

    def _check_functions(self) -> None:
        sigma, star, law = self.sigma, self.sigma_star, self.law
        if star.second_moment + self.noise_std**2 <= 0:
            raise InvalidProblem("target", "must not be zero when noise_std is 0", self.target)
        if sigma.second_moment <= 0:
            raise InvalidProblem("activation", "must not be zero", self.activation)
        c = coefficients(sigma, 2)
        if self.step_size and c[1] == 0.0:
            raise InvalidProblem(
                "activation",
                "must have c_1 = E[zσ(z)] ≠ 0 when the step is not 0, or the step learns nothing",
                self.activation,
            )
        if self.residual == "full" and c[0] != 0.0 and abs(law.mean) > 1e-12:
            raise InvalidProblem(
                "residual",
                "'full' needs a centred activation (centre=True) when the readout law has mean "
                f"{law.mean:.3g}, or the initial output grows with the width",
                self.residual,
            )
        if isinstance(sigma, UserFunction):
            _check_slope(sigma)

    @cached_property
    def sigma(self) -> Nonlinearity:
        """The activation σ, centred if asked."""
        return _activation(self.activation, bool(self.centre))

    @cached_property
    def sigma_star(self) -> Nonlinearity:
        """The target's function σ⋆."""
        return resolve(self.target, "target")

    @cached_property
    def law(self) -> Law:
        """The readout law."""
        return resolve_law(self.readout)

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
        return self.d / self.step_samples

    @property
    def step_samples(self) -> int:
        """n0, never None."""
        assert self.n_step is not None
        return self.n_step

    @property
    def eta(self) -> float:
        """η, never None."""
        assert self.step_size is not None
        return self.step_size

    @property
    def regime(self) -> Regime:
        """Where the step's exponent lies among the published intervals, in words."""
        exponent = self.step_exponent
        if exponent is None:
            exponent = math.log(self.eta) / math.log(self.n) if self.eta > 0 < self.n - 1 else None
        return regime_of(exponent, at_size=self.n if self.step_exponent is None else None)

    @property
    def degree(self) -> int | None:
        """The regime ℓ; None at an end of an interval and at or above 1/2 (see `regime`)."""
        return self.regime.degree

    def replace(self, **changes: Any) -> Problem:
        """The same problem with some fields changed."""
        unknown = set(changes) - set(FIELDS)
        if unknown:
            raise _unknown_field(sorted(unknown)[0])
        given = dict(self.given)
        if "step_size" in changes and changes["step_size"] is not None:
            given.update(step_exponent=None, step_scale=1.0)
        elif changes.get("step_exponent") is not None:
            given["step_size"] = None
        return Problem(**{**given, **changes})

    def vary(self, **axes: Iterable[Any]) -> Grid:
        """The grid of all combinations of the given values, in the order given."""
        return Grid(self, axes)

    @classmethod
    def from_ratios(
        cls, *, phi: float, psi: float, n: int, phi_step: float | None = None, **rest: Any
    ) -> Problem:
        """Sizes from φ = d/n, ψ = d/N (and φ0 = d/n_step), rounded to whole numbers."""
        n = _size("n", n)
        positive = lambda name, v: _number(name, v, "must be > 0", lambda x: x > 0)  # noqa: E731
        for name in ("d", "width"):
            if name in rest:
                raise InvalidProblem(name, "is set by phi and psi", rest[name])
        d = _rounded("phi", "d = phi·n", positive("phi", phi) * n)
        width = _rounded("psi", "width = d/psi", d / positive("psi", psi))
        if phi_step is not None:
            if rest.get("n_step") is not None:
                raise InvalidProblem("n_step", "is set by phi_step", rest["n_step"])
            steps = d / positive("phi_step", phi_step)
            rest["n_step"] = _rounded("phi_step", "n_step = d/phi_step", steps)
        return cls(n=n, d=d, width=width, **rest)

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
        d = _size("d", d)
        sizes = {}
        for name, key, value in (
            ("alpha", "n", alpha),
            ("alpha0", "n_step", alpha0),
            ("width_ratio", "width", width_ratio),
        ):
            ratio = _number(name, value, "must be > 0", lambda v: v > 0)
            sizes[key] = _rounded(name, f"{key} = {name}·d", ratio * d)
        penalty = _number("lambda_", lambda_, "must be > 0", lambda v: v > 0)
        shift = _number("eta_tilde", eta_tilde, "must be >= 0", lambda v: v >= 0)
        settings: dict[str, Any] = {"readout": "constant", **rest}
        for name in ("n", "n_step", "width", "ridge", "step_size", "step_exponent"):
            if name in rest:
                raise InvalidProblem(name, "is set by the ratios of this convention", rest[name])
        return cls(
            d=d,
            ridge=penalty * sizes["width"] / sizes["n"],
            step_size=shift * math.sqrt(sizes["width"]),
            **sizes,
            **settings,
        )

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
        return _rebuild, (dict(self.given),)


FIELDS = tuple(f.name for f in fields(Problem) if f.init)
_REQUIRED = ("n", "d", "width", "ridge")


def _rebuild(given: dict[str, Any]) -> Problem:
    return Problem(**given)


class Grid:
    """All combinations of some fields' values around one base problem."""

    def __init__(self, base: Problem, axes: Mapping[str, Iterable[Any]]) -> None:
        if not axes:
            raise InvalidProblem("vary", "needs at least one field", "none")
        if "step_size" in axes and ("step_exponent" in axes or "step_scale" in axes):
            raise InvalidProblem("vary", "takes step_size or step_exponent, not both", list(axes))
        self.base = base
        self.axes: dict[str, tuple[Any, ...]] = {}
        for name, values in axes.items():
            if name not in FIELDS:
                raise _unknown_field(name)
            self.axes[name] = _axis(name, values)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values along each axis."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the varied fields, in order."""
        return tuple(self.axes)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __iter__(self) -> Iterator[Problem]:
        names = list(self.axes)
        for combination in itertools.product(*self.axes.values()):
            yield self.base.replace(**dict(zip(names, combination, strict=True)))

    def coordinates(self) -> dict[str, list[Any]]:
        """Axis values as labels: numbers stay numbers, functions and laws become text."""
        return {name: [_label(v) for v in values] for name, values in self.axes.items()}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {len(values)}" for name, values in self.axes.items())
        return f"Grid({sizes}; base={self.base!r})"


def _axis(name: str, values: Any) -> tuple[Any, ...]:
    rule = "must be a list of values to vary over"
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidProblem(name, rule, values)
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not listed:
        raise InvalidProblem(name, "must have at least one value to vary over", values)
    return tuple(listed)


def _label(value: Any) -> Any:
    if isinstance(value, (bool, int, float, str)):
        return value
    return value.name if isinstance(value, (Nonlinearity, Law)) else str(value)


def _unknown_field(name: str) -> InvalidProblem:
    return InvalidProblem(name, f"is not a field of Problem ({', '.join(FIELDS)})", name)


def _size(name: str, value: Any) -> int:
    rule = f"must be a whole number from 1 to {MAX_SIZE:.0e}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise InvalidProblem(name, rule, value)
    if not 1 <= value <= MAX_SIZE or value != int(value):
        raise InvalidProblem(name, rule, value)
    return int(value)


def _number(name: str, value: Any, rule: str, test: Callable[[float], bool]) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        raise InvalidProblem(name, f"{rule} (a number)", value)
    if not math.isfinite(value) or not test(float(value)):
        raise InvalidProblem(name, rule, value)
    return float(value)


def _rounded(name: str, what: str, value: float) -> int:
    if not 0.5 <= value <= MAX_SIZE:
        raise InvalidProblem(name, f"must give {what} between 1 and {MAX_SIZE:.0e}", value)
    return max(1, round(value))


@lru_cache(maxsize=256)
def _activation(spec: Spec, centre: bool) -> Nonlinearity:
    sigma = resolve(spec, "activation")
    return sigma.centred() if centre else sigma


@lru_cache(maxsize=256)
def _check_slope(sigma: UserFunction) -> None:
    """A derivative that does not integrate to E[zσ] misses a jump or is wrong."""
    slope, expected = sigma.mean_slope, coefficients(sigma, 1)[1]
    if not abs(slope - expected) <= 1e-6 * math.sqrt(sigma.second_moment):
        raise InvalidProblem(
            "activation",
            f"must be continuous and match its derivative (E[zσ] = {expected:.6g} = E σ′)",
            f"E σ′ = {slope:.6g}",
        )
