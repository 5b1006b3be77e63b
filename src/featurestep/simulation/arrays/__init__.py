"""Which array library computes, and the few factorisations that it needs."""
