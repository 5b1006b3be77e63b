"""Activations, targets and readout laws, with the numbers that theory needs of them."""
