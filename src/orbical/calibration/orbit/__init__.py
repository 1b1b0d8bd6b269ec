"""Measures along the orbits of a scan: at each position, of the whole orbit, and verdicts."""

from __future__ import annotations

from . import pixel_bins, pooled, positions, verdicts, whole_orbit
from .pixel_bins import *
from .pooled import *
from .positions import *
from .verdicts import *
from .whole_orbit import *

__all__ = [
    *pixel_bins.__all__,
    *pooled.__all__,
    *positions.__all__,
    *verdicts.__all__,
    *whole_orbit.__all__,
]
