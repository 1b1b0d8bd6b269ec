"""Search between the elements of a scan: where a model is worst, and where its prediction flips.

A scan looks at finitely many elements; `worst_case` and `flips` also look between them.
"""

from __future__ import annotations

from .flip_search import Flip, flips, nearest_samples_to_flips
from .worst_cases import searched_scan, worst_case

__all__ = ["Flip", "flips", "worst_case"]
