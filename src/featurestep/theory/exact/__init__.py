"""The network itself after a step of any size: its weights' exact response (theory, sections 11–20).

`slopes`, `residuals` (the laws that enter) → `step` (constants of a problem) → `columns` (5, 37, 39,
44) and `dyson` (22–24) → `resolvent` (7, 8, 22, 23) → `regression` (28, 29) → `sources` (30–32) →
`solve`.
"""
