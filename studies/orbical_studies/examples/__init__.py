"""The six examples of the equivariant-calibration paper, computed on finite worlds.

Berman et al., "On Uncertainty Calibration for Equivariant Functions". There is nothing to run: the
page computes all numbers itself, in a few seconds.
"""

from __future__ import annotations

from ..framework import Settings, Study

study = Study.of_package(__name__, "examples", Settings(), {})
