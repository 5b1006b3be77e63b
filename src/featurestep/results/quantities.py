"""What prediction and simulation both measure: one name and one meaning for each."""

from __future__ import annotations

QUANTITIES = {
    "test_error": "test error E(y − âᵀσ(Wx))², noise included",
    "train_loss": "ridge objective at its minimum, (1/n)‖y − Fâ‖² + λ‖â‖²",
    "train_mse": "training error (1/n)‖y − Fâ‖²",
    "readout_norm": "norm of the fitted readout ‖â‖",
}
