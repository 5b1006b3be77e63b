"""The best step size and ridge together, against the best linear ridge regression.

On a target with a cubic part one well-chosen step takes the network below every linear predictor,
even one that is told the target's linear part. On a linear target it cannot win: ridge regression
on the raw inputs, with all the samples and its own best ridge, stays ahead.
"""

from featurestep import Problem, baselines, optimum

problem = Problem(
    n=3000,
    d=700,
    width=1500,
    n_step=6000,
    activation="tanh",
    target="H1 + H3/2",
    readout="gaussian",
    step_exponent=0.3,
    ridge=0.01,
    noise_std=0.5,
)
LARGEST = problem.n**0.5  # the maximal step of the published theory

for target in ("H1 + H3/2", "H1"):
    asked = problem.replace(target=target)
    best = optimum(asked, over=("ridge", "step_size"), bounds={"step_size": (0.1, LARGEST)})
    others = baselines(asked)
    print(f"target {target}")
    print(f"  one step, then ridge     {best.value:.4f}", end="")
    print(f"  at step size {best.location['step_size']:.3g}, ridge {best.location['ridge']:.3g}")
    print(f"  tuned linear ridge       {others.ridge_all_tuned:.4f}  on all n + n_step samples")
    print(f"  best linear predictor    {others.best_linear:.4f}")
    print(f"  untrained, ridge {asked.ridge:g}    {others.untrained:.4f}")
    for note in best.notes:
        print(f"  note: {note}")

    assert best.value < others.untrained
    assert best.value > others.best_given_direction_and_linear
    if target == "H1":
        assert best.value > others.ridge_all_tuned
    else:
        assert not best.at_boundary
        assert best.value < 0.95 * others.best_linear < others.ridge_all_tuned
