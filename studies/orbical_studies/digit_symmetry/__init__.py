"""What rotation invariance costs on real digits: a 6 turned upside down is a 9.

Two photographs never match exactly, so a tolerance alone would decide the accuracy ceiling of a
symmetry. Two questions do have an answer: how often the nearest other image, after the best group
element, is another digit; and what the exact ceiling is once the images are quantized.
"""

from __future__ import annotations

from ..framework import Study
from .measures import Digits

STEPS = {"measure": "measures:measure"}
study = Study.of_package(__name__, "digits", Digits(), STEPS)
