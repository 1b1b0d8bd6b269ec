"""Split conformal sets of classes: LAC, APS and RAPS."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._arrays import ArrayLike
from ..errors import InputError, real_number, whole_number
from ..recalibrate import ScoreReader
from .quantiles import checked_coverage, conformal_quantile


class ConformalSets(ScoreReader, ABC):
    """Sets of classes that contain the true one with a chosen probability.

    A scikit-learn estimator whose features are the scores of a model: column k of `X` is the score
    of class k. One column, `[N]` or `[N, 1]`, is the score of class 1 of two. Torch tensors give
    torch tensors on their device; anything else gives NumPy arrays.

    Args:
        coverage: the probability that a set contains the true class.
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        threshold_: the largest score of a class in a set.
        classes_: the class of each column, `[C]`.
    """

    threshold_: float

    def __init__(self, coverage: float = 0.9, *, outputs: str = "logits") -> None:
        super().__init__(outputs=outputs)
        self.coverage = coverage

    @abstractmethod
    def _nonconformity(self, probs: Tensor, uniform: Tensor) -> Tensor:
        """Score how badly each class fits probabilities `[..., C]`; `uniform` is `[..., 1]`."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        element_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Find the threshold on data used neither for training nor for evaluation.

        Args:
            X: class scores `[N, C]`; or `[N, K, C]` for K positions of each sample, whose label
                holds along the whole orbit.
            y: labels `[N]`: column indices, or C distinct labels whose sorted order is that of
                the columns.
            element_weight: quadrature weights `[K]` of the group; None for equal ones.
            classes: the label of each column, where `y` lacks some; None takes them from `y`.

        Returns:
            The fitted estimator itself.

        Raises:
            InputError: if the data cannot be read, or if there are too few samples for the
                coverage: fewer than `coverage / (1 - coverage)`.
        """
        checked_coverage(self.coverage)
        scores, labels = self._read_scores(X, y, classes)
        at_truth = conformal_scores(scores, labels)
        self.threshold_ = conformal_quantile(at_truth, self.coverage, element_weight)
        return self

    def predict_set(self, X: ArrayLike) -> Any:
        """Return whether each set contains each class.

        Args:
            X: class scores `[..., C]` with at least two axes, such as `[N, C]` or the orbits
                `[N, K, C]`.

        Returns:
            Booleans `[..., C]`, in the order of `classes_`.
        """
        check_is_fitted(self)
        found = self._new_scores(X) <= self.threshold_
        return found if isinstance(X, Tensor) else found.numpy()

    def _read_scores(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None
    ) -> tuple[Tensor, Tensor]:
        """Return scores `[N, K, C]` and class indices `[N]` of calibration samples."""
        outputs = self._read(X, reset=True).detach()
        if outputs.ndim not in (2, 3):
            raise InputError("X", "shape [N, C] or [N, K, C] to fit on", outputs)
        labels = self._read_labels(y, outputs, classes)
        outputs = outputs[:, None] if outputs.ndim == 2 else outputs
        return self._scores(outputs), labels

    def _new_scores(self, X: ArrayLike) -> Tensor:
        return self._scores(self._read(X, reset=False).detach())

    def _scores(self, outputs: Tensor) -> Tensor:
        probs = self._probabilities(outputs).double()
        shape = (len(probs), *[1] * (probs.ndim - 1))
        return self._nonconformity(probs, self._uniform(outputs).to(probs).reshape(shape))

    def _uniform(self, outputs: Tensor) -> Tensor:
        """Return one number in [0, 1) for each sample: its positions and classes share it."""
        return torch.zeros(len(outputs), dtype=torch.float64)


class LAC(ConformalSets):
    """Least ambiguous sets: all classes whose probability is high enough.

        score of class k:  1 - p_k

    The smallest sets on average, if the probabilities are right. A set can be empty: none of the
    classes is probable enough. Sadinle et al. 2019.

    Args:
        coverage: the probability that a set contains the true class.
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        threshold_: the largest score of a class in a set.
        classes_: the class of each column, `[C]`.

    See Also:
        APS: Sets that follow the difficulty of an input.

    References:
        Sadinle et al., Least ambiguous set-valued classifiers with bounded error levels, JASA 2019.

    Example:
        >>> X = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]])
        >>> sets = LAC(coverage=0.75, outputs="probabilities").fit(X, [0, 1, 1, 0])
        >>> round(sets.threshold_, 2)
        0.6
        >>> sets.predict_set([[0.55, 0.45], [0.95, 0.05]])
        array([[ True,  True],
               [ True, False]])
    """

    def _nonconformity(self, probs: Tensor, uniform: Tensor) -> Tensor:
        return 1 - probs


class APS(ConformalSets):
    """Adaptive prediction sets: the most probable classes until their sum is large enough.

        score of class k:  sum of p_j over classes above k  +  u p_k,   u uniform in [0, 1]

    Larger sets for harder inputs. `u`, one number for each sample, makes the coverage exact: with
    probabilities that are right, even for each input. It is a hash of the sample's scores in
    `X`, so a sample has the same set alone, in a batch and in a pipeline.

    Args:
        coverage: the probability that a set contains the true class.
        random_state: the seed of the hash; one `u` for a sample at all positions of its orbit.
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        threshold_: the largest score of a class in a set.
        classes_: the class of each column, `[C]`.

    See Also:
        RAPS: For many classes.
        LAC: The smallest sets.

    References:
        Romano et al., Classification with valid and adaptive coverage, NeurIPS 2020.

    Example:
        >>> X = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]])
        >>> sets = APS(coverage=0.75, outputs="probabilities").fit(X, [0, 1, 1, 0])
        >>> sets.predict_set(X).shape
        (4, 2)
    """

    def __init__(
        self, coverage: float = 0.9, *, random_state: int = 0, outputs: str = "logits"
    ) -> None:
        super().__init__(coverage, outputs=outputs)
        self.random_state = random_state

    def _nonconformity(self, probs: Tensor, uniform: Tensor) -> Tensor:
        ordered, order = probs.sort(dim=-1, descending=True, stable=True)
        scores = ordered.cumsum(-1) - uniform * ordered + self._penalty(probs.shape[-1], probs)
        return torch.empty_like(scores).scatter(-1, order, scores)

    def _penalty(self, classes: int, like: Tensor) -> Tensor:
        """Return what is added to the score of each rank, `[C]`."""
        return torch.zeros(classes, dtype=like.dtype, device=like.device)

    def _uniform(self, outputs: Tensor) -> Tensor:
        seed = whole_number("random_state", self.random_state, 0)
        positions = outputs.reshape(len(outputs), -1, outputs.shape[-1])
        return torch.from_numpy(_hashed_draws_of_class_sets(positions.double().cpu().numpy(), seed))


def _hashed_draws_of_class_sets(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return a number in [0, 1) for each sample `[N, K, C]`, from its bits and a seed alone.

    The order of the K positions does not matter: a sample moved along its orbit keeps its number.

    >>> one, other = np.ones((1, 1, 2)), np.array([[[0.0, 1.0]], [[1.0, 1.0]]])
    >>> draws = [*_hashed_draws_of_class_sets(other, 0), *_hashed_draws_of_class_sets(one, 0)]
    >>> bool(draws[0] != draws[1] == draws[2])
    True
    """
    keys = np.random.default_rng(seed).integers(0, 2**64, (2, rows.shape[-1]), dtype=np.uint64)
    bits = (rows + 0.0).view(np.uint64)  # -0 becomes 0
    classes = _mixed(bits ^ keys[0]) * (keys[1] | np.uint64(1))
    positions = _mixed(classes.sum(-1, dtype=np.uint64))
    mixed = _mixed(positions.sum(-1, dtype=np.uint64))
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Return a bijection of 64 bits that looks random: the finalizer of SplitMix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(bits ^ (bits >> np.uint64(31)))


class RAPS(APS):
    """Regularized adaptive prediction sets: APS with a penalty on classes of a high rank.

        score of class k:  that of APS  +  penalty * max(0, rank of k - free)

    Of many classes, most have small and noisy probabilities that make sets of APS large.
    Angelopoulos et al. 2021.

    Args:
        coverage: the probability that a set contains the true class.
        penalty: the cost of each rank beyond the free ones, >= 0.
        free: the number of classes without a penalty.
        random_state: the seed of `u`, as in `APS`.
        outputs: what `X` is, `"logits"` or `"probabilities"` (rows that sum to 1).

    Attributes:
        threshold_: the largest score of a class in a set.
        classes_: the class of each column, `[C]`.

    See Also:
        APS: Without the penalty.

    References:
        Angelopoulos et al., Uncertainty sets for image classifiers using conformal prediction,
        ICLR 2021.

    Example:
        >>> X = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]])
        >>> sets = RAPS(coverage=0.75, free=1, outputs="probabilities").fit(X, [0, 1, 1, 0])
        >>> sets.predict_set(X).shape
        (4, 2)
    """

    def __init__(
        self,
        coverage: float = 0.9,
        *,
        penalty: float = 0.01,
        free: int = 5,
        random_state: int = 0,
        outputs: str = "logits",
    ) -> None:
        super().__init__(coverage, random_state=random_state, outputs=outputs)
        self.penalty = penalty
        self.free = free

    def _penalty(self, classes: int, like: Tensor) -> Tensor:
        cost = real_number("penalty", self.penalty, ">= 0")
        ranks = torch.arange(1, classes + 1, dtype=like.dtype, device=like.device)
        return cost * (ranks - whole_number("free", self.free, 0)).clamp(min=0)


def conformal_scores(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the scores `[N, K]` of the true classes, from those of all `[N, K, C]`.

    >>> conformal_scores(torch.arange(6.0).reshape(1, 2, 3), torch.tensor([1]))
    tensor([[1., 4.]])
    """
    index = labels[:, None, None].expand(*scores.shape[:2], 1)
    return scores.gather(-1, index)[..., 0]
