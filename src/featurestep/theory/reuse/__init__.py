"""The readout fitted on rows that the step has seen: sections 26–29 of the theory."""
