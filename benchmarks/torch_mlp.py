"""The same network, both layers trained to the end by Adam: what one step is compared with."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

BATCH, EPOCHS, PATIENCE, RATE = 64, 300, 15, 1e-3


class TorchMLP(BaseEstimator):
    """Two layers, ReLU; a tenth of the rows decides when to stop and which state is kept."""

    def __init__(self, width=1000, classes=False, seed=0):
        self.width, self.classes, self.seed = width, classes, seed

    def fit(self, X, y):
        import torch

        torch.manual_seed(self.seed)
        rng = np.random.default_rng(self.seed)
        if self.classes:
            self.labels_, codes = np.unique(y, return_inverse=True)
            outputs, targets = len(self.labels_), torch.tensor(codes)
            loss = torch.nn.CrossEntropyLoss()
        else:
            self.mean_, self.scale_ = y.mean(), y.std()
            targets = torch.tensor((y - self.mean_) / self.scale_, dtype=torch.float32)[:, None]
            outputs, loss = 1, torch.nn.MSELoss()
        inputs = torch.tensor(X, dtype=torch.float32)
        order = rng.permutation(len(X))
        held, kept = torch.tensor(order[: len(X) // 10]), order[len(X) // 10 :]
        model = torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], self.width),
            torch.nn.ReLU(),
            torch.nn.Linear(self.width, outputs),
        )
        optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
        best, since = float("inf"), 0
        for _ in range(EPOCHS):
            for batch in np.array_split(rng.permutation(kept), max(1, len(kept) // BATCH)):
                rows = torch.tensor(batch)
                optimiser.zero_grad()
                loss(model(inputs[rows]), targets[rows]).backward()
                optimiser.step()
            with torch.no_grad():
                now = float(loss(model(inputs[held]), targets[held]))
            if now < best:
                best, since = now, 0
                state = {key: value.clone() for key, value in model.state_dict().items()}
            else:
                since += 1
                if since >= PATIENCE:
                    break
        model.load_state_dict(state)
        self.model_ = model
        return self

    def predict(self, X):
        import torch

        with torch.no_grad():
            out = self.model_(torch.tensor(X, dtype=torch.float32)).numpy()
        return (
            self.labels_[out.argmax(axis=1)]
            if self.classes
            else out[:, 0] * self.scale_ + self.mean_
        )
