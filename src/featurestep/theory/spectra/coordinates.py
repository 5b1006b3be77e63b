"""What the functions that spikes are compared with are at the nodes of a model, and its moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.types import FloatArray
from ...functions.nonlinearity import normalised_hermite
from ..exact.columns import Columns

HIGHEST = 6  # degree of the polynomials that spikes are compared with


@dataclass(frozen=True)
class Coordinates:
    """Means of functions of κ and of the target's coordinates, given a node.

    After one step a node is a value of κ. After several it is ξ, of which κ has a part only.
    """

    kappa: FloatArray  # (Y,) values of κ at which a spike's function is given
    hermite: FloatArray  # (Q, HIGHEST + 1) E[H_k(κ)|node], normalised
    powers: FloatArray  # (Q, HIGHEST) E[κ^k|node]
    power_squares: FloatArray  # (HIGHEST,) E κ^2k
    target: FloatArray  # (r, Q) E[θ_k·x|node]
    across: FloatArray  # (r, r) what θ_k·x has of s
    are_kappa: bool = True  # whether the nodes are those of κ

    def function(self, at_nodes: FloatArray, overlaps: FloatArray) -> FloatArray:
        """A function of κ from its values at the nodes.

        Where these are not those of κ, from its overlaps with H_0 … H_6.
        """
        if self.are_kappa:
            return at_nodes
        return np.asarray(overlaps @ normalised_hermite(HIGHEST, self.kappa))


def bulk_moments(
    columns: Columns,
    weight: FloatArray,
    norm2: FloatArray,
    neurons: FloatArray,
    products: FloatArray,
    sizes: tuple[float, float],
) -> tuple[float, float]:
    """(1/N) tr of FᵀF/n and of its square, means of the features left out.

    norm2, neurons: ρ_g² and N_g, (K,); products: tr(K_gK_h)/d, (K, K); sizes: n and d.
    """
    n, d = sizes
    slope = columns.slope[0]
    linear = norm2 * slope**2  # (Q, K)
    in_chi, in_v2 = linear + columns.spread[0], linear + columns.spread_in_v2[0]
    pairs = ((slope.T * weight) @ slope) ** 2 * products / d
    for sector in columns.sectors:
        table, products = sector.table[0], sector.products[0]  # (Q, K), (P, K, K)
        in_chi, in_v2 = in_chi + table**2, in_v2 + table**2
        shared = np.einsum("p,pgh->gh", sector.share[0], products**2)
        pairs = pairs + ((table.T * weight) @ table) ** 2 * shared / sector.dimension[0]
    size = weight @ in_v2
    rows = (in_v2.T * weight) @ in_chi / n
    share = neurons / neurons.sum()
    return float(share @ size), float(share @ (size**2 + (rows + pairs) @ neurons))
