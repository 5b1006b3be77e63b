"""Several gradient steps on fresh batches, and the readout after the last (sections 60–66)."""
