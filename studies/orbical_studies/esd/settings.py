"""What the study trains: the configurations of each part, and the paper's values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from torch import Tensor

from orbical import losses
from orbical.errors import InputError, unknown_name

Loss = Callable[[Tensor, Tensor], Tensor]
LOSSES: dict[str, Loss] = {
    "MMCE": losses.mmce,
    "SB-ECE": losses.sb_ece,
    "ESD": losses.esd,
    "S-AvUC": losses.s_avuc,
    "ECE": losses.ece,
}
BASELINE = "NLL"
NAMES = (BASELINE, *LOSSES)
GRID = (0.6, 2.0, 6.0)
BEYOND_GRID = (0.2, 20.0)
BATCH = 512
SMALLER_BATCHES = (256, 128, 64)
EPOCHS = {"mnist": 40, "cifar10": 60}
BINS = 20
PARTS = ("cost", "mnist", "cifar10", "ablation", "lambda")


@dataclass(frozen=True)
class Configuration:
    """One training run."""

    data: str
    loss: str
    weight: float
    seed: int
    batch: int = BATCH
    epochs: int = 1

    def key(self) -> str:
        """What tells this run from all others, as one readable word."""
        return (
            f"{self.data}/{self.loss}/lambda={self.weight:g}/batch={self.batch}"
            f"/epochs={self.epochs}/seed={self.seed}"
        )

    def settings(self) -> dict[str, Any]:
        """The fields, for a result line."""
        return asdict(self)


def grid(
    data: str, weights: Sequence[float], seeds: Sequence[int], epochs: int
) -> list[Configuration]:
    """The baseline and every loss with every weight, for each seed, whole seeds first.

    Args:
        data: `"mnist"` or `"cifar10"`.
        weights: the values of lambda.
        seeds: of the initial weights and of the batches' order.
        epochs: of each run.

    Example:
        >>> runs = grid("mnist", GRID, seeds=[0, 1], epochs=3)
        >>> len(runs), runs[0].key()
        (32, 'mnist/NLL/lambda=0/batch=512/epochs=3/seed=0')
    """
    if data not in EPOCHS:
        raise unknown_name("data", data, EPOCHS)
    pairs = [(BASELINE, 0.0), *((name, weight) for name in LOSSES for weight in weights)]
    return [
        Configuration(data, name, weight, seed, epochs=epochs)
        for seed in seeds
        for name, weight in pairs
    ]


def ablation(
    chosen: dict[str, float], seeds: Sequence[int], epochs: int, batches: Iterable[int]
) -> list[Configuration]:
    """Smaller batches on CIFAR-10, for ESD and ECE with their chosen weights (tables 2 and 3).

    The longest runs come first, so that no worker ends with one.

    Args:
        chosen: the weight of each loss, selected at the full batch size.
        seeds: as in `grid`.
        epochs: of each run.
        batches: the batch sizes.

    Example:
        >>> len(ablation({"ESD": 2.0, "ECE": 0.6}, seeds=[0], epochs=1, batches=[64, 128]))
        4
    """
    missing = {"ESD", "ECE"} - set(chosen)
    if missing:
        raise InputError(
            f"results: no finished CIFAR-10 runs of {sorted(missing)} to choose lambda from; "
            "run the part 'cifar10' first, with the same results file and epochs"
        )
    return [
        replace(Configuration("cifar10", loss, chosen[loss], seed, epochs=epochs), batch=batch)
        for batch in sorted(batches)
        for seed in seeds
        for loss in ("ESD", "ECE")
    ]


# Accuracy, ECE, ECE after temperature scaling, accuracy and ECE after vector scaling; in percent.
PAPER_TABLE_1: dict[str, dict[str, tuple[float, float, float, float, float]]] = {
    "mnist": {
        "NLL": (98.8, 0.91, 0.31, 98.7, 0.43),
        "MMCE": (98.4, 0.36, 0.33, 98.4, 0.32),
        "SB-ECE": (97.9, 0.41, 0.45, 97.9, 0.39),
        "ESD": (98.6, 0.30, 0.29, 98.6, 0.28),
    },
    "cifar10": {
        "NLL": (92.9, 5.49, 1.89, 92.3, 2.96),
        "MMCE": (91.5, 4.92, 1.92, 91.3, 2.52),
        "SB-ECE": (91.6, 4.86, 1.63, 91.5, 1.88),
        "ESD": (92.1, 3.08, 1.60, 92.1, 1.61),
    },
}

# Batch size: accuracy and ECE. Table 2 is CIFAR-10; table 3 is CIFAR-100.
PAPER_TABLE_2 = {512: (92.1, 3.08), 256: (91.5, 3.15), 128: (91.5, 2.93), 64: (91.3, 3.91)}
PAPER_TABLE_3 = {512: (68.2, 14.6), 256: (67.9, 18.1), 128: (68.1, 21.0)}
