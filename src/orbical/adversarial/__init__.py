"""The element of a continuous group that hurts a model most, sample by sample.

A scan looks at finitely many elements; `worst_case` also searches between them.
"""

from __future__ import annotations

from .cases import of_scan, worst_case

__all__ = ["worst_case"]
