"""Where theory and simulation meet: comparisons and the phase diagram."""
