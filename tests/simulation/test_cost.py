"""What was promised before a run is what it took: flops exactly, memory as measured."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from featurestep import Problem, estimate, simulate

PROBLEM = Problem(n=300, d=40, width=50, ridge=0.01, noise_std=0.2, step_size=2.0)
VARIANTS = ("trained", "initial", "spiked:2", "gaussian", "srf")

MEASURE = """
from featurestep import Problem
from featurestep import Setting, estimate, simulate

def status(field):
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))

small = Problem(n=600, d=300, width=300, ridge=0.01, step_size=1.0)
simulate(small, seeds=1, variants=("trained", "initial"))  # libraries and thread pools
problem = {problem}
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
before = status("VmRSS")
simulate(problem, seeds=1, n_test=1000, {options})
print(status("VmHWM") - before, estimate(problem, seeds=1, n_test=1000, {options}).memory)
"""


def measured(problem, options=""):
    script = MEASURE.format(problem=problem, options=options)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    peak, promised = map(int, done.stdout.split())
    return peak, promised


@pytest.mark.parametrize(
    "axes",
    [
        {"ridge": [0.01]},
        {"step_size": [0.0, 1.0, 2.0, 3.0], "ridge": [0.01, 0.1]},
        {"n": [30, 50, 64, 200], "n_step": [100]},
        {"noise_std": [0.0, 0.1, 0.2], "step_size": [0.5, 1.0]},
        {"ridge": list(np.geomspace(1e-3, 1, 40))},
        {"width": [20, 400], "residual": ["labels", "full"]},
        {"step_size": list(np.linspace(1, 5, 30))},
    ],
    ids=lambda axes: "-".join(axes),
)
@pytest.mark.parametrize("steps", [1, 3])
def test_flops_are_counted_as_promised(axes, steps):
    grid = PROBLEM.replace(steps=steps).vary(**axes)
    options = {"seeds": 2, "n_test": 100}
    options["variants"] = VARIANTS if steps == 1 else ("trained", "gaussian")
    calls = []
    found = simulate(grid, **options, progress=lambda done, total: calls.append((done, total)))
    promised = estimate(grid, **options).flops
    assert found.flops == promised
    assert calls[-1] == (promised, promised)
    done = [now for now, _ in calls]
    assert done == sorted(done)
    assert found.rate == pytest.approx(promised / found.wall_time)


def test_a_point_counts_what_its_products_need():
    p = PROBLEM
    step = 2 * 2 * p.n * p.d * p.width
    sample = 2 * p.n * p.d * p.width + p.n * p.width * (p.width + 4)
    solve = p.width**3 // 3 + 2 * p.width**2
    test = 2 * 100 * p.d * p.width + 2 * 100 * p.width
    assert estimate(p, seeds=3, n_test=100).flops == 3 * (step + sample + solve + test)


def test_memory_does_not_grow_with_n_beyond_the_width():
    small, large = (
        estimate(PROBLEM.replace(n=n, n_step=100, width=400), n_test=5000).memory
        for n in (5000, 10**7)
    )
    assert small == large


def test_memory_grows_with_the_number_of_step_sizes_only_until_the_sample_is_held():
    base = Problem(n=3000, d=100, width=2000, ridge=0.01, step_size=1.0)
    two, many = (
        estimate(base.vary(step_size=list(np.linspace(1, 2, count)))).memory for count in (2, 50)
    )
    assert many < two + 5 * 8 * 3000 * 2000


def test_text_of_an_estimate():
    assert str(estimate(PROBLEM)).startswith("13 MiB of memory, 1.67e+08 flops")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("problem", "options"),
    [
        pytest.param(
            "Problem(n=4000, d=1000, width=2000, ridge=0.01, step_size=1.0)",
            "",
            marks=pytest.mark.slow,
        ),
        (
            "Problem(n=2000, d=1000, width=2500, ridge=0.01, step_size=1.0, residual='full')",
            "variants=('trained', 'initial', 'gaussian')",
        ),
        (
            "Problem(n=2500, d=500, width=2000, ridge=0.1, step_size=1.0, loss='huber')",
            "",
        ),
        pytest.param(
            "Problem(n=2000, d=500, width=2500, ridge=0.1, step_size=1.0, loss='hinge')",
            "",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["streamed", "held", "another loss", "hinge"],
)
def test_memory_is_as_promised(problem, options):
    peak, promised = measured(problem, options)
    assert abs(peak - promised) < 0.2 * promised


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_long_sample_needs_little_memory():
    problem = "Problem(n=40_000, d=1000, width=2000, ridge=0.01, step_size=1.0)"
    peak, promised = measured(f"{problem}.vary(step_size=[1.0, 2.0, 3.0, 4.0])")
    assert peak < 1.5e9
    assert abs(peak - promised) < 0.2 * promised
