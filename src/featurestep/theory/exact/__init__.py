"""The network itself after a step of any size: the weights' exact response (sections 11–20).

`slopes`, `residuals` (the laws that enter) → `step` (constants of a problem) → `dyson` (22–24) →
`covariance` (24, 28) → `columns` (5, 37, 39, 44) → `resolvent` (7, 8, 22, 23) → `regression` (29) →
`sources` (30–32) → `solve`. For spectra: `weights`, `spikes` (36).
"""
