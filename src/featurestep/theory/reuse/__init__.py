"""The readout fitted on rows that the step has seen: sections 22–27 of the theory."""
