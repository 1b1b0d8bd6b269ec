"""Galaxies: real ones from files, generated ones, and the blur between them and us."""

from __future__ import annotations

import zipfile
from itertools import pairwise

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage

from orbical.errors import InputError
from orbical_studies.data import efigi, galaxies, galaxy_zoo, point_spread


def picture(path, size=(8, 8), colour=(255, 0, 0)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).save(path)


def test_spirals_lie_in_a_folder_of_their_own(tmp_path):
    for name in ("train/spirals/b", "train/other/a", "validation/spirals/c"):
        picture(tmp_path / f"{name}.png", colour=(0, 255, 0) if "spirals" in name else (255, 0, 0))
    with zipfile.ZipFile(tmp_path / "gz2_spiral_106.zip", "w") as archive:
        for file in tmp_path.rglob("*.png"):
            archive.write(file, file.relative_to(tmp_path))
    images, labels = galaxy_zoo(tmp_path, "train", size=10)
    assert images.shape == (2, 3, 10, 10)
    assert labels.tolist() == images[:, 1, 0, 0].tolist() == [0, 1]


def test_galaxies_without_a_row_in_the_catalogue_are_refused(tmp_path):
    (tmp_path / "EFIGI_labels.csv").write_text(",pgc_id,T\n0,PGC1,3\n")
    picture(tmp_path / "PGC2.jpg")
    with zipfile.ZipFile(tmp_path / "images100.zip", "w") as archive:
        archive.write(tmp_path / "PGC2.jpg", "PGC2.jpg")
    with pytest.raises(InputError, match=r"expected a row in 'EFIGI_labels\.csv'.*'PGC2'"):
        efigi(tmp_path)


@pytest.mark.parametrize("sigma", [0.7, 2.5])
def test_the_blur_is_scipys(sigma):
    image = np.random.default_rng(0).random((1, 2, 40, 40))
    ours = point_spread(torch.as_tensor(image), sigma)
    theirs = ndimage.gaussian_filter(image, (0, 0, sigma, sigma), mode="mirror")
    assert np.allclose(ours, theirs, atol=1e-6)


def test_blurs_add_up_in_their_squares():
    image = torch.zeros(1, 1, 61, 61, dtype=torch.float64)
    image[..., 30, 30] = 1
    twice = point_spread(point_spread(image, 1.5), 2.0)
    assert torch.allclose(twice, point_spread(image, 2.5), atol=1e-4)


def test_a_negative_blur_is_refused():
    with pytest.raises(InputError, match=r"sigma: expected .* got -1"):
        point_spread(torch.zeros(1, 1, 8, 8), -1)


def test_generated_galaxies_repeat_and_mirror_into_the_other_class():
    images, labels = galaxies(90, noise=0.0)
    assert torch.equal(images, galaxies(90, noise=0.0)[0])
    # Arms wind the other way in a mirror: their phase against the logarithm of the radius turns.
    senses = {int(label): [] for label in labels.unique()}
    axis = torch.arange(48) - 23.5
    y, x = torch.meshgrid(-axis, axis, indexing="ij")
    angle, radius = torch.atan2(y, x), (x**2 + y**2).sqrt()
    wind = torch.polar(torch.ones_like(radius), 2 * angle)
    for image, label in zip(images[:, 0], labels, strict=True):
        rings = [(image * wind)[(radius > r) & (radius < r + 2)].sum() for r in range(6, 16, 2)]
        steps = [(after / before).angle() for before, after in pairwise(rings)]
        senses[int(label)].append(float(torch.stack(steps).mean()))
    left, right = (np.array(senses[label]) for label in (1, 2))
    assert (left > 0).mean() > 0.75 > 0.25 > (right > 0).mean()
    assert left.mean() > 0.3 > -0.3 > right.mean()


READ = [
    (lambda: efigi(size=20), [1022, 1465, 1971]),
    (lambda: galaxy_zoo(split="validation", size=20), [300, 300]),
]


@pytest.mark.parametrize(("read", "counts"), READ)
def test_the_real_galaxies_are_read(read, counts):
    try:
        images, labels = read()
    except InputError:
        pytest.skip("the catalogs are not here")
    assert images.shape == (sum(counts), 3, 20, 20)
    assert labels.bincount().tolist() == counts
