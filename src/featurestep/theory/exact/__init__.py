"""The network itself after a step of any size: the weights' exact response (sections 11–20).

`slopes`, `residuals` (the laws that enter) → `step` (constants of a problem) → `columns` (5, 37,
39, 44) and `dyson` (22–24) → `resolvent` (7, 8, 22, 23) → `covariance`, `regression` (24, 28, 29)
→ `sources` (30–32) → `solve`.
"""
