"""The worst angle between the scanned ones, and the failures that a scan does not see."""

from __future__ import annotations

import orbical as ob

from ..framework import Results
from ..hidden_failures import searched
from .measures import NETWORKS, Digits, read_digits

SCANNED = (12, 24, 72)
SEARCHED = 1000


def worst(settings: Digits, results: Results) -> None:
    """Search the worst case of the first digits from scans of several numbers of angles."""
    images, labels = (part[:SEARCHED] for part in read_digits(settings))
    networks = {name: ob.zoo.digits.load(name) for name in NETWORKS}
    rows = [
        {"network": name, "angles": angles, **counts}
        for angles in SCANNED
        for name, counts in searched(
            networks, (images, labels), f"rotations:{angles}", ob.tasks.Classification()
        ).items()
    ]
    results.write("worst", rows)
