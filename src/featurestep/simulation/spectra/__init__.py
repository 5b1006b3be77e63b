"""Singular values of the features and weights of the network."""
