"""The colours of plots and of the live page."""

# Okabe and Ito's palette: told apart by every kind of colour vision, and in order of contrast.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
