"""Pairs `(confidence, correct)`: read and checked, made from a model's outputs, or from a scan."""

from __future__ import annotations

from . import from_outputs, from_scans
from .from_outputs import *
from .from_scans import *

__all__ = [*from_outputs.__all__, *from_scans.__all__]
