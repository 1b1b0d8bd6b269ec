"""Losses that train for calibration, on a network's outputs: logits and labels, or parameters.

    loss = cross_entropy(logits, labels) + 50.0 * orbical.losses.esd(held_logits, held_labels)

Each is a function, and a `torch.nn` module of the same settings (`esd` and `ESDLoss`). The
classification losses are the measures of `orbical.calibration` on the top label. They compute in
float32 or more under autocast too, and are float64 scalars. Values (labels in range, positive
variances) are checked on the CPU only: on an accelerator a check would make the host wait for the
device at every step.

| function | module | trains for |
|---|---|---|
| `esd`, `esd_softened` | `ESDLoss`, `SoftenedESDLoss` | calibration of the top label, no bins |
| `mmce` | `MMCELoss` | the same, with a kernel |
| `ece`, `sb_ece` | `ECELoss`, `SBECELoss` | the same, over hard and soft bins |
| `s_avuc` | `SAvUCLoss` | certainty where right, uncertainty where wrong |
| `gaussian_nll`, `beta_nll` | `GaussianNLLLoss`, `BetaNLLLoss` | a mean and a variance |
| `covariance_nll` | `CovarianceNLLLoss` | a mean and a full covariance |
| `nig_nll`, `nig_regularizer` | `NIGNLLLoss`, `NIGRegularizerLoss` | evidential regression |
"""

from . import classification_losses, distributed, modules, regression_losses
from .classification_losses import *
from .distributed import *
from .modules import *
from .regression_losses import *

__all__: list[str] = []
__all__ += classification_losses.__all__
__all__ += distributed.__all__
__all__ += modules.__all__
__all__ += regression_losses.__all__
