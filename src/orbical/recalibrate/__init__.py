"""Recalibration: maps, fitted on held-out data, from a model's outputs to calibrated probabilities.

| calibrator | what it learns | for |
|---|---|---|
| `Temperature` | one number; predictions stay | the first thing to try |
| `VectorScaling`, `MatrixScaling` | numbers for each class, for each pair | classes that differ |
| `Isotonic`, `HistogramBinning` | a curve | many held-out samples |
| `OrbitTemperature` | one number for all positions of an orbit | scans |

In the manner of scikit-learn: parameters in the constructor, `fit`, `transform`, learned attributes
with a trailing underscore. Inputs are named (`logits=` or `probs=`) and never guessed.

>>> import torch
>>> import orbical as ob
>>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]])
>>> labels = torch.tensor([0, 0, 1, 1])
>>> scaling = ob.recalibrate.Temperature().fit(logits=logits, labels=labels)
>>> scaling.transform(logits=logits)[0]  # right in three of four cases
tensor([0.7500, 0.2500])
"""

from .base import Calibrator, load
from .linear import MatrixScaling, VectorScaling
from .reduced import HistogramBinning, Isotonic
from .temperature import OrbitTemperature, Temperature

__all__ = [
    "Calibrator",
    "HistogramBinning",
    "Isotonic",
    "MatrixScaling",
    "OrbitTemperature",
    "Temperature",
    "VectorScaling",
    "load",
]
