"""`python -m featurestep`."""

from .cli import main

main(prog_name="featurestep")
