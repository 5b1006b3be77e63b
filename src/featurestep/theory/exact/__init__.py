"""The network itself after a step of any size: the weights' exact response (sections 11–20).

In the order of the equations: `labels` (the law of r) → `step` (constants of the step, 19–27,
38, 42) → `dyson` (9, 22, 24, 28, 34, 46) → `columns` (5, 37, 39, 44) → `fixed_point` (7, 8, 23) →
`regression` (29) → `errors` (13–15, 30) → `solve`.
"""
