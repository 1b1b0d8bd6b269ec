"""What the molecule study varies: the network, what it is trained for, the loss, the seed."""

from __future__ import annotations

from dataclasses import dataclass

PROPERTIES = (
    *("lumo", "gap", "u0", "u", "u0_atom", "g_atom"),
    *("rotational_a", "rotational_b", "rotational_c", "r2", "dipole"),
)
"""The ten properties of the paper's Table 1 in its order, and the dipole of its Fig. 8."""

ROBUST = ("rotational_a", "rotational_b", "rotational_c")
"""Properties with tails so heavy that a few small molecules make up their deviation."""

GIN_NAME, INVARIANT_NAME, ORIENTED_NAME = "GIN", "invariant", "oriented"
NETWORKS = (GIN_NAME, INVARIANT_NAME, ORIENTED_NAME)
"""The paper's two networks, both invariant; and the second one without its symmetry."""

COMPARED = (GIN_NAME, INVARIANT_NAME)
SEEDS = (0, 1, 2)
ALL = "all"
SINGLE = ("dipole", "gap")
"""Properties that also get a backbone of their own."""

SHOWN = "dipole"
"""The property of the paper's Fig. 8."""

LIKELIHOOD, PRINTED = "likelihood", "printed"
"""Likelihood after a start by squared error; the paper's loss, likelihood and penalty, alone."""

PENALTY = 0.1
"""The paper's weight of `|y - gamma| (2 nu + alpha)`, its smaller one."""

EPOCHS = 100
BATCH = 256


@dataclass(frozen=True)
class Trial:
    """One training; its text is its name.

    Attributes:
        network: one of `NETWORKS`.
        target: `ALL` for eleven heads on one backbone, or one property for a head of its own.
        loss: `LIKELIHOOD` or `PRINTED`.
        seed: of weights and batches.
        epochs: passes over the training molecules; the rate ends at 0.
        batch: molecules a step.
    """

    network: str
    target: str = ALL
    loss: str = LIKELIHOOD
    seed: int = 0
    epochs: int = EPOCHS
    batch: int = BATCH

    @property
    def properties(self) -> tuple[str, ...]:
        """The properties that are learnt."""
        return PROPERTIES if self.target == ALL else (self.target,)

    def __str__(self) -> str:
        return f"{self.network}/{self.target}/{self.loss}/seed {self.seed}"


def trials(seeds: tuple[int, ...] = SEEDS, epochs: int = EPOCHS, batch: int = BATCH) -> list[Trial]:
    """List all trainings: the main ones, then the controls with the first seed.

    >>> [str(trial) for trial in trials()[-2:]]
    ['invariant/gap/likelihood/seed 0', 'GIN/gap/likelihood/seed 0']
    >>> len(trials())
    15
    """
    main = [
        Trial(name, seed=seed, epochs=epochs, batch=batch)
        for seed in seeds
        for name in NETWORKS[::-1]  # the slower ones first
    ]
    controls = [
        Trial(name, target, loss, seeds[0], epochs, batch)
        for target, loss in ((ALL, PRINTED), *((name, LIKELIHOOD) for name in SINGLE))
        for name in COMPARED[::-1]
    ]
    return main + controls
