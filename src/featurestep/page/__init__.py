"""The live page behind `featurestep explore`: every control at hand, every panel computed.

One way through: `state` (what is asked, validated) → `parts` (the engine's answers as plain data,
run by `pool` in worker processes under a deadline) → `figures`, `words`, `reproduce` → `callbacks`
behind `guard`, served by `server`. Dash is imported by `layout`, `callbacks` and `server` only.
"""
