"""What each term of sections 50–53 is worth: how far errors move without it.

    python -m benchmarks.terms

Over random problems of `benchmarks.small_d` (another seed than those of the records), the largest
change, that of one problem in ten and the median, of test errors and training losses.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from benchmarks.small_d import cases
from featurestep import Problem, predict
from featurestep.theory import prediction
from featurestep.theory.exact import columns, degrees, sectors, solve
from tests.theory.perturbed import HIGHER_TERMS

COUNT, SEED = 80, 77
Patch = Callable[[pytest.MonkeyPatch], None]


def _without(term: str) -> Patch:
    return lambda patch: HIGHER_TERMS[term](patch, 0.0)


def _with_zeros(method: str, *names: str, item: int | None = None) -> Patch:
    """A method of `FieldColumns` that sees 0 in attributes, or in one of their items."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        find = getattr(degrees.FieldColumns, method)

        def changed(self: Any) -> Any:
            kept = {name: getattr(self, name) for name in names}
            for name, value in kept.items():
                if item is None:
                    zero: Any = 0.0 * value
                else:
                    zero = [(i != item) * part for i, part in enumerate(value)]
                setattr(self, name, zero)
            try:
                return find(self)
            finally:
                for name, value in kept.items():
                    setattr(self, name, value)

        monkeypatch.setattr(degrees.FieldColumns, method, changed)

    return patch


def _cubic_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Degree 3 is noise."""
    build, spread = degrees.build_sectors, degrees.Tables.spread
    across = degrees.Tables.across

    def slopes(self: Any, k_ss: Any) -> degrees.TablesAcross:
        found, size = across(self, k_ss), self.s[0].shape[2]
        pairs = size * (size + 1) // 2
        kept = np.delete(found.products, slice(2 * pairs, 3 * pairs), axis=2)
        return degrees.TablesAcross(kept, found.spread)

    def sectors(*args: Any) -> Any:
        found, mixed = build(*args)
        return found[:1], mixed

    monkeypatch.setattr(columns, "build_sectors", sectors)
    monkeypatch.setattr(
        degrees.Tables, "spread", lambda self: spread(self) + self.of_degree(3) ** 2
    )
    monkeypatch.setattr(degrees.Tables, "across", slopes)


def _nodes(count: int) -> Patch:
    return lambda patch: patch.setattr(sectors, "NODES", count)


def _own_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = degrees.FieldColumns.__init__

    def changed(self: Any, *args: Any) -> None:
        begin(self, *args)
        self.own_norm = 0.0 * self.own_norm

    monkeypatch.setattr(degrees.FieldColumns, "__init__", changed)


def _overlaps(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = degrees.Tables.__init__

    def changed(self: Any, *args: Any) -> None:
        begin(self, *args)
        self.shift = 0.0 * self.shift

    monkeypatch.setattr(degrees.Tables, "__init__", changed)


TERMS: dict[str, Patch] = {
    "block of degree 3 (134)": _cubic_block,
    "norms of samples in tables (135)": _without("radial factor (135)"),
    "overlaps Sh in tables (136)": _overlaps,
    "coordinates κxᵢ (138)": _without("coordinates along κ (138)"),
    "norm of a sample in (κκ), (κs), (ss) (140)": _with_zeros("square", "inverse"),
    "s₃ in τ and ψ (141)": _with_zeros("linear", "s", item=3),
    "s₄ in (κκ), (κs), (ss) (141)": _with_zeros("square", "s", item=4),
    "fields of degree 3 (142)": _without("fields of degree 3 (142)"),
    "norm of a sample in them (142)": _with_zeros("cube", "radius"),
    "norms of Gaussian rows (143)": _without("initial norms (143)"),
    "two of four nodes (145)": _nodes(2),
    "three of four nodes (145)": _nodes(3),
    "norms in the block (149)": _without("norms in the block (149)"),
    "own norm (150)": _own_norm,
    "own shift (151)": _without("own shift (151)"),
    "influence across (152)": lambda patch: patch.setattr(
        solve, "labels_across", lambda *_: (None, None)
    ),
}


def errors(problems: Sequence[Problem]) -> np.ndarray:
    """Test errors and training losses."""
    found = [predict(problem) for problem in problems]
    return np.array([(each.test_error, each.train_loss) for each in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=COUNT)
    problems = [Problem(**fields) for fields in cases(parser.parse_args().count, SEED)]
    usual = errors(problems)
    print("| without | test error, largest change % | 9 in 10 below | median | training loss | | |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, remove in TERMS.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prediction, "SELF_CHECK", np.inf)  # (31) need not hold without a term
            remove(patch)
            change = 100.0 * np.abs(errors(problems) / usual - 1.0)
        cells = [f"{f(each):.3f}" for each in change.T for f in (np.max, _most, np.median)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _most(values: np.ndarray) -> float:
    return float(np.quantile(values, 0.9))


if __name__ == "__main__":
    main()
