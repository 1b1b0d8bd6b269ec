"""Unit tests for models: whether they are equivariant, and whether forces are conservative."""

from __future__ import annotations

from .conservativity import ConservativityError, assert_conservative, conservativity_error
from .equivariance import TOLERANCE, EquivarianceError, assert_equivariant, equivariance_error

__all__ = [
    "TOLERANCE", "ConservativityError", "EquivarianceError", "assert_conservative",
    "assert_equivariant", "conservativity_error", "equivariance_error",
]  # fmt: skip
