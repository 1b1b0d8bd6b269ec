"""Tests of models: whether and where they are equivariant, and whether forces are conservative."""

from __future__ import annotations

from .conservativity import ConservativityError, assert_conservative, conservativity_error
from .equivariance import TOLERANCE, EquivarianceError, assert_equivariant, equivariance_error
from .layers import LayerErrors, layer_errors

__all__ = [
    "TOLERANCE", "ConservativityError", "EquivarianceError", "LayerErrors", "assert_conservative",
    "assert_equivariant", "conservativity_error", "equivariance_error", "layer_errors",
]  # fmt: skip
