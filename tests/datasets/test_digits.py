from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits

from orbical import datasets


def test_digits_are_scikit_learns_as_float_images() -> None:
    images, labels = datasets.digits()
    bunch = load_digits()
    assert images.shape == (1797, 1, 8, 8)
    assert images.dtype == torch.float32
    assert labels.dtype == torch.int64
    np.testing.assert_array_equal(images.flatten(1).numpy() * 16, bunch.data)
    np.testing.assert_array_equal(labels.numpy(), bunch.target)


def test_every_built_in_name_gives_images_and_labels_of_one_length() -> None:
    for make in datasets.BUILT_IN.values():
        images, labels = make()
        assert images.ndim == 4
        assert labels.shape == images.shape[:1]
