"""The losses as `torch.nn` modules: settings in the constructor, `forward(input, target)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..errors import InputError
from . import classification_losses, regression_losses

__all__ = [
    "BetaNLLLoss", "CovarianceNLLLoss", "ECELoss", "ESDLoss", "GaussianNLLLoss", "MMCELoss",
    "NIGNLLLoss", "NIGRegularizerLoss", "SAvUCLoss", "SBECELoss", "SoftenedESDLoss",
]  # fmt: skip


class _Loss(nn.Module):
    """A loss function with its settings: the function's keyword arguments, but for the weights."""

    function: ClassVar[Callable[..., Tensor]]
    own: ClassVar[tuple[inspect.Parameter, ...]] = ()
    """Parameters of the constructor beside the settings."""

    def __init_subclass__(cls, function: Callable[..., Tensor] | None = None) -> None:
        super().__init_subclass__()
        if function is not None:
            cls.function = staticmethod(function)
            given = inspect.signature(function).parameters.values()
            settings = (p for p in given if p.kind is p.KEYWORD_ONLY and p.name != "weights")
            cls.__signature__ = inspect.Signature([*cls.own, *settings])  # type: ignore[attr-defined]

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        bound = inspect.signature(type(self)).bind(**settings)
        bound.apply_defaults()
        taken = [parameter.name for parameter in self.own]
        self.settings = {k: v for k, v in bound.arguments.items() if k not in taken}

    def extra_repr(self) -> str:
        """Return the settings, as the constructor takes them."""
        return ", ".join(f"{k}={v!r}" for k, v in self.settings.items() if v is not None)


class _LabelLoss(_Loss):
    own = (inspect.Parameter("weight", inspect.Parameter.KEYWORD_ONLY, default=None),)
    weight: Tensor | None

    def __init__(self, *, weight: Tensor | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        given = None if weight is None else torch.as_tensor(weight)
        self.register_buffer("weight", given, persistent=False)

    def forward(self, input: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
        """Return the loss of logits `[n, classes, ...]`, class indices and weights `[n, ...]`."""
        if self.weight is not None:
            classes = max(2, input.shape[1]) if input.ndim > 1 else 2  # one logit is that of two
            if self.weight.shape != (classes,):
                raise InputError(
                    "weight", f"shape ({classes},), one value for each class", self.weight
                )
            # a label to ignore may lie outside of the classes
            flat = target.reshape(-1) if input.ndim <= 2 else target
            of_class = self.weight[flat.clamp(0, len(self.weight) - 1)]
            weights = of_class if weights is None else of_class * weights
        return type(self).function(input, target, weights=weights, **self.settings)


class _LikelihoodLoss(_Loss):
    def forward(
        self, input: Sequence[Tensor], target: Tensor, weights: Tensor | None = None
    ) -> Tensor:
        """Return the loss of parameters, as a head returns them, a target and weights `[n]`."""
        if isinstance(input, Tensor):
            raise InputError(
                "input",
                "the parameters in a tuple",
                f"a tensor of shape {tuple(input.shape)}",
                remedy="pass them as a head returns them, such as loss((mean, variance), target)",
            )
        return type(self).function(*input, target, weights=weights, **self.settings)


class ESDLoss(_LabelLoss, function=classification_losses.esd):
    """Expected squared difference of the top label; see `esd` for the settings.

    As in all modules for labels, `weight` `[classes]` rescales each class, as in
    `torch.nn.CrossEntropyLoss`, and `forward` takes sample weights `[n]` beside input and target.
    There is nothing to train or to save.

    Example:
        >>> import torch
        >>> loss = ESDLoss(ignore_index=-100)
        >>> loss
        ESDLoss(ignore_index=-100)
        >>> logits = torch.tensor([[4.0, 0.0], [3.0, 0.0], [0.0, 2.0], [5.0, 0.0], [0.0, 0.0]])
        >>> loss(logits, torch.tensor([0, 1, 1, 1, -100]))
        tensor(-0.0202, dtype=torch.float64)
    """


class SoftenedESDLoss(_LabelLoss, function=classification_losses.esd_softened):
    """ESD with a softened indicator; see `esd_softened` for the settings."""


class MMCELoss(_LabelLoss, function=classification_losses.mmce):
    """Squared maximum mean calibration error; see `mmce` for the settings."""


class SBECELoss(_LabelLoss, function=classification_losses.sb_ece):
    """Soft-binned calibration error; see `sb_ece` for the settings."""


class SAvUCLoss(_LabelLoss, function=classification_losses.s_avuc):
    """Soft accuracy-versus-uncertainty loss; see `s_avuc` for the settings."""


class ECELoss(_LabelLoss, function=classification_losses.ece):
    """Binned calibration error with the bins held fixed; see `ece` for the settings."""


class GaussianNLLLoss(_LikelihoodLoss, function=regression_losses.gaussian_nll):
    """Gaussian negative log-density; input is `(mean, variance)`; see `gaussian_nll`.

    Example:
        >>> import torch
        >>> loss = GaussianNLLLoss(reduction="sum")
        >>> loss((torch.zeros(2), torch.ones(2)), torch.tensor([1.0, -1.0]))
        tensor(2.8379)
    """


class BetaNLLLoss(_LikelihoodLoss, function=regression_losses.beta_nll):
    """Gaussian density weighted by its variance; input is `(mean, variance)`; see `beta_nll`."""


class CovarianceNLLLoss(_LikelihoodLoss, function=regression_losses.covariance_nll):
    """Gaussian with a full covariance; input is `(mean, covariance)`; see `covariance_nll`."""


class NIGNLLLoss(_LikelihoodLoss, function=regression_losses.nig_nll):
    """Evidential negative log-density; input is `(gamma, nu, alpha, beta)`; see `nig_nll`."""


class NIGRegularizerLoss(_LikelihoodLoss, function=regression_losses.nig_regularizer):
    """Penalty of wrong evidence; input is `(gamma, nu, alpha)`; see `nig_regularizer`."""
