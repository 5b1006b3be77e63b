"""Results drawn: each function takes results and Axes, or makes its own, and returns the Axes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .regime import interval

if TYPE_CHECKING:
    import xarray
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .theory import Limit, Prediction

COLUMN = 3.3  # inches: one column of a journal page
# Okabe and Ito's palette: told apart by every kind of colour vision, and in order of contrast.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 3,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "featurestep",
}
LABELS = {
    "step_exponent": r"step exponent $\alpha$",
    "step_size": r"step size $\eta$",
    "step_scale": r"step scale $\eta / n^\alpha$",
    "ridge": r"ridge $\lambda$",
    "noise_std": r"noise $\sigma_\varepsilon$",
    "n": r"samples $n$",
    "d": r"dimension $d$",
    "width": r"width $N$",
    "n_step": r"samples of the step $n_0$",
    "test_error": r"test error $L_{\mathrm{te}}$",
    "train_loss": r"training loss $L_{\mathrm{tr}}$",
}
_DEEPEST = 30  # degree up to which regimes are drawn; their intervals shrink towards 1/2


def label(name: str) -> str:
    """A field or a variable with the papers' symbol."""
    return LABELS.get(name, name.replace("_", " "))


def new_axes(
    *, rows: int = 1, columns: int = 1, width: float = COLUMN, height: float = 2.4
) -> list[Axes]:
    """Axes of a new figure, row by row, without pyplot's global state."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return list(figure.subplots(rows, columns, sharex=True, squeeze=False).flat)


def render(figure: Figure, kind: str) -> bytes:
    """The figure as the bytes of a png, pdf or svg file, the same for the same results."""
    from matplotlib import rc_context

    stamp = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    buffer = io.BytesIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format=kind, metadata=stamp)
    return buffer.getvalue()


def learned(prediction: Prediction, ax: Axes | None = None) -> Axes:
    """What the network computes along the learned direction, M(κ), over the best, E[y|κ]."""
    ax = new_axes()[0] if ax is None else ax
    kappa = np.linspace(-3.0, 3.0, 241)
    best, found = prediction.target_along(kappa), prediction.learned(kappa)
    ax.plot(kappa, best, color="0.45", linestyle=(0, (4, 1.5)), label=r"best, $E[y\,|\,\kappa]$")
    ax.plot(kappa, found, color=PALETTE[0], label=r"learned, $M(\kappa)$")
    ax.set_xlabel(r"input along the learned direction $\kappa$")
    ax.set_ylabel("output")
    ax.set_title(rf"alignment $\gamma$ = {prediction.alignment:.3f}")
    ax.legend(loc="best")
    return ax


def curve(results: xarray.Dataset, variable: str, ax: Axes | None = None) -> Axes:
    """A variable of a grid's results against its first field, one line for each of its second."""
    ax = new_axes()[0] if ax is None else ax
    field, *second = map(str, results[variable].dims)
    x = results[field].values
    values = results[variable].values.reshape(len(x), -1)
    names = (
        [f"{label(second[0])} = {_short(v)}" for v in results[second[0]].values] if second else []
    )
    marker = "o" if len(x) <= 15 else ""
    for i, column in enumerate(values.T):
        name = names[i] if names else None
        ax.plot(x, column, color=line_colour(i, values.shape[1]), marker=marker, label=name)
    numeric = np.issubdtype(x.dtype, np.number)
    if numeric and x.min() > 0 and x.max() >= 30 * x.min():
        ax.set_xscale("log")
    ax.set_xlabel(label(field))
    ax.set_ylabel(label(variable))
    return ax


def line_colour(index: int, count: int) -> Any:
    """The palette for a few lines, a perceptual scale for many."""
    if count <= len(PALETTE):
        return PALETTE[index]
    from matplotlib import colormaps

    return colormaps["viridis"](0.95 * index / (count - 1))


def staircase(
    limits: Sequence[Limit], variable: str, ax: Axes, *, colour: Any = "black", name: str = ""
) -> Axes:
    """The limit n → ∞ of each regime as a step over its interval of exponents."""
    inside = ax.get_xlim()
    steps = []
    for limit in sorted(limits, key=lambda limit: limit.degree or 0):
        low, high = np.clip(interval(limit.degree or 0), *inside)
        if low < high:
            steps.append((low, high, getattr(limit, variable)))
    if steps:
        edges = [steps[0][0], *(high for _, high, _ in steps)]
        style: dict[str, Any] = {"color": colour, "linewidth": 0.9, "linestyle": (0, (4, 1.5))}
        ax.stairs([v for *_, v in steps], edges, baseline=None, label=name, **style)
    ax.set_xlim(inside)
    return ax


def shade_regimes(ax: Axes, *, names: bool = True) -> Axes:
    """Tint every other regime of the step exponent and write its degree ℓ above."""
    left, right = inside = ax.get_xlim()
    for degree in range(1, _DEEPEST):
        low, high = np.clip(interval(degree), left, right)
        if low >= high:
            continue
        if degree % 2 == 0:
            ax.axvspan(low, high, color="0.93", linewidth=0, zorder=-1)
        if names and high - low > 0.04 * (right - left):
            text = rf"$\ell = {degree}$" if high - low > 0.12 * (right - left) else f"${degree}$"
            where = ((low + high) / 2, 1.02)
            ax.text(*where, text, transform=ax.get_xaxis_transform(), ha="center", fontsize=6.5)
    ax.set_xlim(inside)
    return ax


def curves(
    results: xarray.Dataset,
    variables: Sequence[str],
    stairs: Sequence[Sequence[Limit]] = (),
    *,
    finite: bool = True,
) -> list[Axes]:
    """Panels under each other, one for each variable, over a field they share.

    `stairs` has the limits for each line; without `finite` only they are drawn.
    """
    field, *second = map(str, results[variables[0]].dims)
    panels = new_axes(rows=len(variables), height=0.6 + 1.8 * len(variables))
    for row, (ax, variable) in enumerate(zip(panels, variables, strict=True)):
        curve(results, variable, ax)
        if field == "step_exponent":
            ax.set_xlim(*_span(results[field].values))
            shade_regimes(ax, names=row == 0)
        _add_stairs(ax, variable, stairs, keep_lines=finite)
        if row < len(variables) - 1:
            ax.set_xlabel("")
    if second or stairs:
        panels[0].legend(loc="best")
    return panels


def _add_stairs(
    ax: Axes, variable: str, stairs: Sequence[Sequence[Limit]], *, keep_lines: bool
) -> None:
    lines = list(ax.lines)
    for line, limits in zip(lines, stairs, strict=bool(stairs)):
        colour = line.get_color() if len(lines) > 1 else "black"
        name = r"$n \to \infty$" if line is lines[-1] else ""
        staircase(limits, variable, ax, colour=colour, name=name)
        if not keep_lines:
            line.set(linestyle="none", marker=".")
    if stairs and len(lines) == 1:
        lines[0].set_label("finite $n$" if keep_lines else "asked for")


def _span(values: Any) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if low < high else (low - 0.05, high + 0.05)


def figure_of(ax: Axes) -> Figure:
    """The figure that holds some axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def compare(results: xarray.Dataset, variables: Sequence[str], ax: Axes | None = None) -> Axes:
    """Several errors of a grid's results against its one field, in one panel."""
    ax = new_axes(height=3.0)[0] if ax is None else ax
    for i, variable in enumerate(variables):
        curve(results, variable, ax)
        line = ax.lines[-1]
        line.set(color=line_colour(i, len(variables)), label=label(variable))
    ax.set_ylabel(label("test_error"))
    ax.legend(loc="best")
    return ax


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
