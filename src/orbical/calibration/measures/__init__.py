"""Calibration errors and scores: functions of arrays that reduce over samples."""

from __future__ import annotations

from . import (
    binned,
    bleed,
    by_class,
    cumulative,
    gaussian,
    generalized,
    kernel_errors,
    proper_scores,
    smooth,
    soft,
    variance_errors,
)
from .binned import *
from .bleed import *
from .by_class import *
from .cumulative import *
from .gaussian import *
from .generalized import *
from .kernel_errors import *
from .proper_scores import *
from .smooth import *
from .soft import *
from .variance_errors import *

__all__ = [
    *binned.__all__,
    *bleed.__all__,
    *by_class.__all__,
    *cumulative.__all__,
    *gaussian.__all__,
    *generalized.__all__,
    *kernel_errors.__all__,
    *proper_scores.__all__,
    *smooth.__all__,
    *soft.__all__,
    *variance_errors.__all__,
]
