"""xRFM behind scikit-learn's two verbs: a fifth of the rows is what it asks for as validation."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split


class XRFM(BaseEstimator):
    """xRFM with its own defaults."""

    def __init__(self, classes=False, seed=0):
        self.classes, self.seed = classes, seed

    def fit(self, X, y):
        import torch
        from xrfm import xRFM

        if self.classes:
            self.labels_, y = np.unique(y, return_inverse=True)
        kept = y if self.classes else None
        X, X_val, y, y_val = train_test_split(
            X, y, test_size=0.2, random_state=self.seed, stratify=kept
        )
        kind = torch.long if self.classes else torch.float32
        as_tensors = [torch.tensor(a, dtype=torch.float32) for a in (X, X_val)]
        y, y_val = (torch.tensor(a, dtype=kind) for a in (y, y_val))
        if not self.classes:
            y, y_val = y[:, None], y_val[:, None]
        metric = "accuracy" if self.classes else "mse"
        self.model_ = xRFM(
            device="cpu", tuning_metric=metric, random_state=self.seed, verbose=False
        )
        self.model_.fit(as_tensors[0], y, as_tensors[1], y_val)
        return self

    def predict(self, X):
        import torch

        out = np.asarray(self.model_.predict(torch.tensor(X, dtype=torch.float32)))
        return self.labels_[out.astype(int).ravel()] if self.classes else out.ravel()
