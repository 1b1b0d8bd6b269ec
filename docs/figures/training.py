"""Print the search for the weight of the ESD loss that the repair guide shows.

    python docs/figures/training.py

trains one small network for each weight on 1,000 digits of the extra `demo`, with 500 others for
the calibration loss, and measures accuracy and ECE on 2,500 that neither saw.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import orbical as ob
from orbical import losses, training

WEIGHTS = (0.0, 2.0, 6.0, 20.0, 50.0, 150.0)
TRAIN, HELD = 1000, 500
EPOCHS, BATCH = 30, 100
SEEDS = (0, 1)


def scores(weight: float, seed: int) -> tuple[float, float]:
    """Train with a weight; return accuracy and ECE on the validation digits."""
    images, labels = ob.datasets.mnist("train")
    images = images.flatten(1)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    parts = (slice(0, TRAIN), slice(TRAIN, TRAIN + HELD))
    loaders = [
        DataLoader(TensorDataset(images[part], labels[part]), BATCH, shuffle=True, drop_last=True)
        for part in parts
    ]
    objective = training.interleaved(losses.esd, weight=weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(EPOCHS):
        for pair in training.interleave(*loaders):
            optimizer.zero_grad()
            objective(model, pair).backward()
            optimizer.step()
    with torch.no_grad():
        logits = model(images[TRAIN + HELD :])
    confidence, correct = ob.calibration.top_label(logits=logits, labels=labels[TRAIN + HELD :])
    return float(correct.double().mean()), float(ob.calibration.ece(confidence, correct))


def main() -> None:
    """Print a table, and the weight that `training.select` chooses."""
    found: dict[float, tuple[float, float]] = {}
    print("| weight | accuracy | ECE |\n|---|---|---|")
    for weight in WEIGHTS:
        accuracy, ece = torch.tensor([scores(weight, seed) for seed in SEEDS]).mean(0).tolist()
        found[weight] = round(accuracy, 3), round(ece, 3)
        print(f"| {weight:g} | {accuracy:.3f} | {ece:.3f} |", flush=True)
    print(training.select(found, baseline_accuracy=found[0.0][0]))


if __name__ == "__main__":
    main()
