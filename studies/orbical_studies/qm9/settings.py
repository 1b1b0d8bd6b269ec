"""What the molecule study varies: the network, what it is trained for, the loss, the seed."""

from __future__ import annotations

from dataclasses import dataclass

from ..framework import TrainingSettings, option

PROPERTIES = (
    *("lumo", "gap", "u0", "u", "u0_atom", "g_atom"),
    *("rotational_a", "rotational_b", "rotational_c", "r2", "dipole"),
)
"""The ten properties of the paper's Table 1 in its order, and the dipole of its Fig. 8."""

COMPARED = ("GIN", "invariant")
NETWORKS = (*COMPARED, "oriented")
"""The paper's two networks, both invariant; and the second one without its symmetry."""

CONTRAST = NETWORKS[1:]
"""One network with and without its symmetry: what the symmetry alone does."""

ALL = "all"
SINGLE = ("dipole", "gap")
"""Properties that also get a backbone of their own."""

SHOWN = "dipole"
"""The property of the paper's Fig. 8."""

LIKELIHOOD, PRINTED = "likelihood", "printed"
"""Likelihood after a start by squared error; the paper's loss, likelihood and penalty, alone."""
PENALTIES = {PRINTED: 0.1, f"{PRINTED}, 1": 1.0}
"""The paper's weights of `|y - gamma| (2 nu + alpha)`."""


@dataclass(frozen=True)
class Settings(TrainingSettings):
    """What is packed and trained."""

    count: int | None = option(None, "pack only the first of each split", least=1, kind=int)
    epochs: int = option(100, "passes over the training molecules", least=1)
    batch: int = option(256, "molecules a step", least=1)
    seeds: tuple[int, ...] = option((0, 1, 2), "of the main trainings", least=0)
    more_seeds: tuple[int, ...] = option((3, 4, 5), "of the contrast, beside `seeds`", least=0)


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name.

    Attributes:
        network: One of `NETWORKS`.
        target: `ALL` for eleven heads on one backbone, or one property for a head of its own.
        loss: `LIKELIHOOD`, or one of `PENALTIES`.
        seed: Of weights and batches.
        epochs: Passes over the training molecules; the rate ends at 0.
        batch: Molecules a step.
    """

    network: str
    target: str = ALL
    loss: str = LIKELIHOOD
    seed: int = 0
    epochs: int = 100
    batch: int = 256

    @property
    def properties(self) -> tuple[str, ...]:
        """The properties that are learned."""
        return PROPERTIES if self.target == ALL else (self.target,)

    def __str__(self) -> str:
        return f"{self.network}/{self.target}/{self.loss}/seed {self.seed}"


def trials(settings: Settings) -> list[Trial]:
    """List all trainings: the main ones, the contrast's, then the controls with the first seed.

    >>> [str(trial) for trial in trials(Settings())[-2:]]
    ['invariant/gap/likelihood/seed 0', 'GIN/gap/likelihood/seed 0']
    >>> len(trials(Settings()))
    21
    """
    main = [(n, ALL, LIKELIHOOD, s) for s in settings.seeds for n in NETWORKS[::-1]]  # slow first
    main += [(n, ALL, LIKELIHOOD, s) for s in settings.more_seeds for n in CONTRAST[::-1]]
    others = ((ALL, PRINTED), *((name, LIKELIHOOD) for name in SINGLE))
    controls = [(n, *other, settings.seeds[0]) for other in others for n in COMPARED[::-1]]
    return [Trial(*kind, settings.epochs, settings.batch) for kind in (*main, *controls)]
