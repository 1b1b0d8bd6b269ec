"""Images of every mode and depth that Pillow opens, against OpenCV as another reader."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import orbical as ob
from orbical.errors import InputError

cv2 = pytest.importorskip("cv2")

RAMP = np.linspace(0, 1, 12 * 16).reshape(12, 16)
COLORS = np.stack([RAMP, RAMP[::-1], RAMP[:, ::-1]], -1)


def read_one(folder, **options):
    """Read the only image of a folder, as a scan does."""
    source = ob.data.ImageFolder(folder, **options)
    source.check()
    return source.read(0, 1)[0][0]


def other_reader(path):
    """What OpenCV reads, in 0..1 by the depth of its array, as `[3, height, width]`."""
    pixels = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    most = np.iinfo(pixels.dtype).max if pixels.dtype.kind == "u" else 1
    pixels = np.atleast_3d(pixels)[..., :3][..., ::-1] / most
    return np.broadcast_to(pixels, (*pixels.shape[:2], 3)).transpose(2, 0, 1)


# Each mode that Pillow writes to a format that it reads again, with what it writes.
GRAY8, COLOR8 = np.uint8(RAMP * 255), np.uint8(COLORS * 255)
FILES = {
    "1": Image.fromarray(GRAY8).convert("1"),
    "L": Image.fromarray(GRAY8),
    "LA": Image.fromarray(GRAY8).convert("LA"),
    "P": Image.fromarray(GRAY8).convert("P"),
    "RGB": Image.fromarray(COLOR8),
    "RGBA": Image.fromarray(COLOR8).convert("RGBA"),
    "I;16": Image.fromarray(np.uint16(RAMP * 65535)),
}


@pytest.mark.parametrize("mode", FILES)
def test_every_mode_of_a_png_is_read_as_another_reader_does(tmp_path, mode):
    image = FILES[mode]
    assert image.mode == mode
    image.save(tmp_path / "one.png")
    expected = other_reader(tmp_path / "one.png")
    assert np.abs(read_one(tmp_path).numpy() - expected).max() < 1e-6


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
@pytest.mark.parametrize("bits", [12, 16])
def test_gray_of_16_bits_keeps_every_level(tmp_path, suffix, bits):
    levels = np.uint16(np.rint(RAMP * (2**bits - 1)))
    assert cv2.imwrite(str(tmp_path / f"one{suffix}"), levels)
    pixels = read_one(tmp_path)
    assert pixels.shape == (3, 12, 16)
    assert np.abs(pixels.numpy() - other_reader(tmp_path / f"one{suffix}")).max() < 1e-6
    assert len(pixels.unique()) == len(np.unique(levels))


def test_a_scan_of_16_bit_images_sees_the_pixels(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 4096, (4, 8, 8), dtype=np.uint16)  # 12 bits, as cameras have
    for number, image in enumerate(images):
        cv2.imwrite(str(tmp_path / f"{number}.png"), image)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64, 3))
    scan = ob.scan(
        net,
        tmp_path,
        group="cyclic:4",
        task="classification",
        keep="inputs",
        progress=False,
    )
    stored = scan.data["input"].values
    assert np.abs(stored - images[:, None] / 65535).max() < 1e-6


def test_floats_in_the_unit_range_stay_as_they_are(tmp_path):
    cv2.imwrite(str(tmp_path / "one.tif"), np.float32(RAMP))
    assert np.abs(read_one(tmp_path).numpy() - RAMP).max() < 1e-6


@pytest.mark.parametrize(
    ("pixels", "words"),
    [
        (np.float32(RAMP * 255), "values from 0 to 255 are not in 0..1"),
        (np.float32(RAMP - 0.5), "values from -0.5 to 0.5 are not in 0..1"),
        (np.float32(np.where(RAMP > 0.5, np.nan, RAMP)), "are not in 0..1"),
        (np.int16(RAMP * 3000 - 1000), "no white"),
        (np.int32(RAMP * 70000), "no white"),
    ],
)
def test_numbers_without_a_known_range_are_refused(tmp_path, pixels, words):
    cv2.imwrite(str(tmp_path / "one.tif"), pixels)
    with pytest.raises(InputError, match=words) as caught:
        read_one(tmp_path)
    assert "mode='F'" in str(caught.value)
    raw = read_one(tmp_path, mode="F")
    assert np.array_equal(raw[0].numpy(), pixels.astype(np.float32), equal_nan=True)


def test_what_pillow_reads_in_part_is_said(tmp_path):
    deep = np.uint16(COLORS * 65535)
    cv2.imwrite(str(tmp_path / "one.png"), deep)
    with pytest.warns(UserWarning, match="1 image of 1 .* 16 bits in each of several channels"):
        pixels = read_one(tmp_path)
    assert np.abs(pixels.numpy() - other_reader(tmp_path / "one.png")).max() < 1 / 128
    (tmp_path / "one.png").unlink()
    pages = [Image.fromarray(GRAY8), Image.fromarray(GRAY8[::-1])]
    pages[0].save(tmp_path / "stack.tif", save_all=True, append_images=pages[1:])
    with pytest.warns(UserWarning, match="several pages, of which the first is read"):
        read_one(tmp_path)


def test_a_color_ppm_of_16_bits_is_said_to_be_read_in_part(tmp_path):
    cv2.imwrite(str(tmp_path / "one.ppm"), np.uint16(COLORS * 65535))
    with pytest.warns(UserWarning, match="16 bits in each of several channels"):
        pixels = read_one(tmp_path)
    assert np.abs(pixels.numpy() - other_reader(tmp_path / "one.ppm")).max() < 1 / 128


@pytest.mark.parametrize("mode", ["RGB", "F"])
def test_signed_integers_of_8_bits_are_refused(tmp_path, mode):
    Image.fromarray(GRAY8).save(tmp_path / "one.tif", tiffinfo={339: 2})
    with pytest.raises(InputError, match="without their sign"):
        read_one(tmp_path, mode=mode)


@pytest.mark.parametrize("pixels", [np.uint16(RAMP * 65535), np.float32(RAMP)], ids=["16", "float"])
def test_white_may_be_zero(tmp_path, pixels):
    image = Image.fromarray(pixels)
    image.save(tmp_path / "one.tif", tiffinfo={262: 0})
    with Image.open(tmp_path / "one.tif") as written:
        assert written.tag_v2[262] == 0
    assert np.abs(read_one(tmp_path).numpy() - (1 - RAMP)).max() < 1e-4


@pytest.mark.parametrize("mode", ["RGB", "L", "YCbCr"])
def test_deep_images_are_resized_and_transformed_like_others(tmp_path, mode):
    cv2.imwrite(str(tmp_path / "one.png"), np.uint16(RAMP * 65535))
    deep = read_one(tmp_path, size=6, mode=mode)
    as_given = read_one(
        tmp_path, mode=mode, transform=lambda image: torch.from_numpy(np.array(image))
    )
    (tmp_path / "one.png").unlink()
    Image.fromarray(np.rint(RAMP * 255).astype(np.uint8)).save(tmp_path / "one.png")
    assert torch.allclose(deep, read_one(tmp_path, size=6, mode=mode), atol=1 / 128)
    again = read_one(tmp_path, mode=mode, transform=lambda image: torch.from_numpy(np.array(image)))
    assert (as_given.int() - again.int()).abs().max() <= 1
