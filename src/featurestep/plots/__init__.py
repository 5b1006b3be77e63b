"""Results drawn: each function takes results and Axes, or makes its own, and returns the Axes."""
