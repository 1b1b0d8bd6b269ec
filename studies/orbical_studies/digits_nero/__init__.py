"""NERO plots of all MNIST test digits: the paper's claims about them, measured.

Sections 2.2 to 2.4 of Zhao et al., "Evaluating Machine Learning Models with NERO", on the 10,000
test images of MNIST at 72 rotations, with the two networks that ship with the package. The scan
takes a few minutes on two cores; an interrupted one is continued.
"""

from __future__ import annotations

from ..framework import Study
from .measures import Digits

STEPS = {
    "scan": "measures:scan",
    "measure": "measures:measure",
    "worst": "measures:worst",
}
study = Study.of_package(__name__, "digits-nero", Digits(), STEPS)
