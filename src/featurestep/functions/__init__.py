"""Activations, targets, readout laws, and the averages and roots that are taken of them."""

from ..core.threads import let_idle_threads_sleep

let_idle_threads_sleep()  # SciPy, which brings a BLAS of its own, is loaded with its first use
