"""The live page behind `featurestep explore`: every control at hand, every panel computed.

One way through: `state` (what is asked, validated) → `parts` and `spectrum_panel` (the engine's
answers as plain data, run in worker processes under a deadline) → `figures`, `words`, `reproduce`
→ `views` → `routes` (JSON), guarded and served by `server`. `assets` asks the routes and draws with
Plotly. Flask is imported by `routes` and `server` only.
"""
