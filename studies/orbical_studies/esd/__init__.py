"""Training for calibration: the ESD paper on MNIST and CIFAR-10, with six losses.

134 trainings take about two hours on a large GPU, less with --workers 10. On a processor,
--data mnist --images 2000 --epochs 3 --seeds 1 tries everything out in minutes. `ablation` chooses
lambda from the trainings of `train`. To train on another machine: `pack` here, copy the work
folder, `train`, `ablation`, `cost`, `fronts`, `time-fronts` there, copy it back, then `collect` and
`collect-fronts` here. `fronts` trains on all images of CIFAR-10 and CIFAR-100; `grid` then trains
every weight of the paper's grid once, and `collect-grid` writes their table.

Yoon et al., "ESD: Expected Squared Difference as a Tuning-Free Trainable Calibration Measure".
"""

from __future__ import annotations

from ..framework import Study
from .settings import Settings

STEPS = {
    "pack": "packing:pack",
    "train": "training:train",
    "ablation": "training:ablation",
    "cost": "timing:cost",
    "collect": "training:collect",
    "cumulative": "cumulative:write_curves",
    "fronts": "fronts:train_fronts",
    "time-fronts": "fronts:time_fronts",
    "collect-fronts": "fronts:collect_fronts",
    "grid": "papers_grid:train_grid",
    "collect-grid": "papers_grid:collect_grid",
    "mnist-grid": "mnist_grid:train_mnist",
    "mnist-seeds": "mnist_grid:train_mnist_seeds",
    "collect-mnist": "mnist_grid:collect_mnist",
    "overfitted": "overfitted:train_overfitted",
    "collect-overfitted": "overfitted:collect_overfitted",
    "pack-transformer": "transformer:pack_transformer",
    "transformer": "transformer:train_transformer",
    "collect-transformer": "transformer:collect_transformer",
    "published": "cumulative:write_scaling",
    "pack-nli": "nli:pack_nli",
    "nli": "nli:train_nli",
    "collect-nli": "collecting:collect_nli",
    "pack-tiny": "collecting:pack_tiny",
    "tiny": "tiny:train_tiny",
    "collect-tiny": "collecting:collect_tiny",
    "pack-corruptions": "corruptions:pack_corruptions",
    "corruptions": "corruptions:evaluate_corruptions",
}
"""Imported when they run: a machine that only trains has not all packages."""

study = Study.of_package(__name__, "esd", Settings(), STEPS, palette=64)
