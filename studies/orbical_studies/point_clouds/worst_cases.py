"""The worst rotation between the scanned ones, for the networks of the first training."""

from __future__ import annotations

import torch

import orbical as ob

from ..framework import Results
from ..framework.training import finished, read_trained
from ..hidden_failures import searched
from .training import NETWORKS, WHOLE, Settings, Trial, trained_network, unpack

DATA, EACH = "modelnet10", 10


def worst(settings: Settings, results: Results) -> None:
    """Search the worst case of the first test clouds of each class, from all sampled rotations."""
    trials = finished([Trial(DATA, name, WHOLE) for name in NETWORKS], results.work)
    networks = {
        trial.network: trained_network(trial, arrays, settings)
        for trial, (_, arrays) in zip(trials, read_trained(trials, results.work), strict=True)
    }
    _, test = unpack(results.work / f"{DATA}.npz")
    rows = torch.cat(
        [torch.nonzero(test.labels == label)[:EACH, 0] for label in test.labels.unique()]
    )
    data = test.points[rows, : settings.points], test.labels[rows]
    task = ob.tasks.Classification(ob.actions.Points())
    found = searched(networks, data, settings.ball, task)
    results.write("worst", [{"network": name, **counts} for name, counts in found.items()])
