"""Losses that train for calibration, on what a network gives: logits and labels, or parameters.

    loss = cross_entropy(logits, labels) + 2.0 * orbical.losses.esd(held_logits, held_labels)

The classification losses are the measures of `orbical.calibration` on the top label. They compute
in float32 or more under autocast too, and are float64 scalars. Values (labels in range, positive
variances) are checked on the CPU only: on an accelerator a check would make the host wait for the
device at every step.
"""

from .classification import ece, esd, esd_softened, mmce, s_avuc, sb_ece, top_label
from .distributed import gather_across_ranks
from .regression import beta_nll, covariance_nll, gaussian_nll, nig_nll, nig_regularizer

__all__ = [
    "beta_nll",
    "covariance_nll",
    "ece",
    "esd",
    "esd_softened",
    "gather_across_ranks",
    "gaussian_nll",
    "mmce",
    "nig_nll",
    "nig_regularizer",
    "s_avuc",
    "sb_ece",
    "top_label",
]
