"""Where a wrong symmetry puts its variance: two vector fields on a plane, learned with variances.

Networks that are equivariant under rotations and mirrors of space, and perceptrons, learn a field
that has this symmetry and one that does not. 48 trainings take about five minutes on one core.

Section 6.1.1, appendix B and Figs 6 and 7 of Berman et al., "On Uncertainty Calibration for
Equivariant Functions".
"""

from __future__ import annotations

from ..framework import Study
from .training import Settings

STEPS = {"run": "measures:run"}
study = Study.of_package(__name__, "vector-field", Settings(), STEPS, palette=256)
