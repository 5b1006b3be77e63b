"""How figures look: sizes, colours, labels, and figures without pyplot's global state."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

from ..core.display import PALETTE as PALETTE
from ..core.grid import Grid, as_grid
from ..core.problem import Problem
from ..core.types import Axes, Figure

COLUMN = 3.3  # inches: one column of a journal page
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
_LOSS_NAMES = {
    "square": r"loss $\frac{1}{2}(y - f)^2$",
    "logistic": "log loss",
    "squared_hinge": "squared hinge loss",
    "hinge": "hinge loss",
    "square_signs": r"loss $\frac{1}{2}(y - f)^2$",
    "huber": "Huber loss",
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
    "train_mse": "training error",
    "test_loss": "test loss",
    **{
        f"{sample}_loss_{loss}": f"{sample} {text}"
        for sample in ("test", "train")
        for loss, text in _LOSS_NAMES.items()
    },
    **{
        f"{sample}_error_{kind}": f"{sample} error ({text})"
        for sample in ("test", "train")
        for kind, text in (("signs", "wrong signs"), ("squares", "squared"))
    },
    "readout_norm": r"readout norm $\|\hat a\|$",
    "phi": r"$\phi = d/n$",
    "psi": r"$\psi = d/N$",
    "phi_step": r"$\phi_0 = d/n_0$",
    "degree": r"degree $\ell$",
    "untrained": "untrained network",
    "ridge_n": "linear ridge, $n$ samples",
    "ridge_n_tuned": "linear ridge, $n$ samples, tuned",
    "ridge_all": "linear ridge, $n + n_0$",
    "ridge_all_tuned": "linear ridge, $n + n_0$, tuned",
    "linear_n": "linear, $n$ samples",
    "linear_n_tuned": "linear, $n$ samples, tuned",
    "linear_all": "linear, $n + n_0$",
    "linear_all_tuned": "linear, $n + n_0$, tuned",
    "bayes_error": "Bayes error",
    "best_linear": "best linear function",
    "best_affine": "best affine function",
    "best_given_direction": r"best function of $\kappa$",
    "best_given_direction_and_linear": r"best of $\kappa$, and linear",
    "floor": "floor of one step",
    "floor_many": r"floor of one step, $n_0/d \to \infty$",
    "class_floor": "with this activation and law",
    "class_floor_many": r"with both, $n_0/d \to \infty$",
}
_MAX_LEGEND_LINES = 8  # of lines in a legend
P = ParamSpec("P")
R = TypeVar("R")


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Draw in the house style, and leave matplotlib's settings as they were."""

    @wraps(draw)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        from matplotlib import rc_context

        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return inner


def label(name: str) -> str:
    """A field or a variable with the papers' symbol."""
    return LABELS.get(name, name.replace("_", " "))


def of_loss(name: str, problem: Problem | Grid) -> str:
    """The name by which `label` says what a loss or an error is, by the loss of the problem.

    It stays as it is for the square loss, and where the points of a grid differ.
    """
    points = list(as_grid(problem))
    sample, _, kind = name.partition("_")
    if points[0].has_square_loss or sample not in ("test", "train"):
        return name
    kinds = {
        "loss": {point.loss for point in points},
        "error": {"signs" if point.is_binary else "squares" for point in points},
    }.get(kind, set())
    return f"{name}_{kinds.pop()}" if len(kinds) == 1 else name


def short(value: Any) -> str:
    """A value as names of lines and rows have it."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def line_names(field: str, values: Any) -> list[str]:
    """What a field is on each line; of very many lines only some are named."""
    stride = -(-len(values) // _MAX_LEGEND_LINES)
    return [
        "" if i % stride else f"{label(field)} = {short(value)}" for i, value in enumerate(values)
    ]


def symbols(term: str) -> str:
    """A term such as z1*z2 or H2(z1)*z3 in the letters of a formula."""
    import re

    return "$" + re.sub(r"([zuH])(\d+)", r"\1_{\2}", term).replace("*", r"\,") + "$"


def spans_decades(field: str, values: Any) -> bool:
    """Whether an axis over numbers reads better on a log scale."""
    if field == "step_exponent" or not np.issubdtype(np.asarray(values).dtype, np.number):
        return False
    return bool(0 < 30 * min(values) <= max(values))


@styled
def new_axes(
    *,
    rows: int = 1,
    columns: int = 1,
    width: float = COLUMN,
    height: float = 2.4,
    sharex: bool = True,
    ratios: Sequence[float] | None = None,
) -> list[Axes]:
    """Axes of a new figure, row by row, without pyplot's global state.

    `ratios` are those of the heights of several rows, or of the widths of several columns.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    sizes: dict[str, Any] = {"height_ratios" if rows > 1 else "width_ratios": ratios}
    return list(figure.subplots(rows, columns, sharex=sharex, squeeze=False, **sizes).flat)


@styled
def render(figure: Figure, kind: str) -> bytes:
    """The figure as the bytes of a png, pdf or svg file, the same for the same results."""
    stamp = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=stamp)
    return buffer.getvalue()


def figure_of(ax: Axes) -> Figure:
    """The figure that holds some axes."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def log_ticks(ax: Axes, which: Literal["x", "y"]) -> None:
    """A logarithmic axis with plain numbers, 1, 2, 5, 10, …"""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis = ax.xaxis if which == "x" else ax.yaxis
    (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def legend_below(ax: Axes, *, shared: bool = False, **options: Any) -> None:
    """The panel's lines, where some have names, named below it, where nothing is hidden.

    Among other panels, which somebody else has laid out, the names stay inside, unless they are
    `shared` by all panels of the figure.
    """
    figure, handles = figure_of(ax), ax.get_legend_handles_labels()
    if not handles[0]:
        return
    if shared or (len(figure.axes) == 1 and figure.get_constrained_layout()):
        figure.legend(*handles, loc="outside lower center", **{"ncols": 2, **options})
    else:
        ax.legend(*handles, loc="best", **options)


def legend_above(ax: Axes, *, columns: int, **options: Any) -> None:
    """The panel's lines named above it, for figures whose panels each have their own."""
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    ax.legend(ncols=columns, borderaxespad=0.1, columnspacing=1.2, **place, **options)


def line_colour(index: int, count: int) -> Any:
    """The palette for a few lines, a perceptual scale for many."""
    if count <= len(PALETTE):
        return PALETTE[index]
    from matplotlib import colormaps

    return colormaps["viridis"](0.95 * index / (count - 1))
