"""Recalibration: maps from a model's scores to calibrated probabilities, fitted on held-out data.

| calibrator | what it learns | for |
|---|---|---|
| `Temperature` | one number; predictions stay | the first thing to try |
| `VectorScaling`, `MatrixScaling` | numbers for each class, for each pair | classes that differ |
| `Dirichlet` | numbers for each pair, of probabilities | the same, where logits are unknown |
| `Beta` | three numbers | a curve that no temperature bends, few samples |
| `Isotonic`, `HistogramBinning` | a curve | many held-out samples |
| `OrbitTemperature` | one number for all elements of an orbit | scans |

All are scikit-learn estimators: `fit(X, y)`, `predict_proba(X)`, `clone`, pipelines. Constructors
state what `X` is, `outputs="logits"` or `outputs="probabilities"`; it is never guessed. Torch
tensors give torch tensors, differentiable for the scalings; anything else gives NumPy arrays.

>>> import torch
>>> import orbical as ob
>>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]])
>>> scaling = ob.recalibrate.Temperature().fit(logits, [0, 0, 1, 1])
>>> scaling.predict_proba(logits)[0]  # right in three of four cases
tensor([0.7500, 0.2500])
"""

from .calibrator import Calibrator, ScoreReader, calibrator_weights, load
from .confidence_maps import Beta, HistogramBinning, Isotonic
from .linear_scaling import Dirichlet, MatrixScaling, VectorScaling
from .temperature import OrbitTemperature, Temperature

__all__ = [
    "Beta", "Calibrator", "Dirichlet", "HistogramBinning", "Isotonic", "MatrixScaling",
    "OrbitTemperature", "Temperature", "VectorScaling", "load",
]  # fmt: skip
