"""Frames: what goes in comes out, laid out as a page expects it."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from talking import decode, decode_part

from orbical.errors import InputError
from orbical.interface.wire import encode_frame, encode_report_part, quantize, quantize_log_odds


def test_a_frame_gives_back_header_and_arrays() -> None:
    arrays = {
        "mask": np.array([1, 0, 1], np.uint8),
        "values": np.array([[1.5, np.nan], [-np.inf, 0]], np.float32),
        "picture": b"\x89PNG12",
        "index": np.arange(6, dtype=np.int32).reshape(1, 2, 3),
        "empty": np.zeros((0, 2), np.float32),
    }
    header, found = decode(encode_frame({"kind": "x", "text": "Grüße"}, arrays))
    assert header == {"kind": "x", "text": "Grüße"}
    assert [*found] == [*arrays]
    for name, array in arrays.items():
        if isinstance(array, bytes):
            assert found[name] == array
        else:
            np.testing.assert_array_equal(found[name], array)
            assert found[name].shape == array.shape


def test_every_buffer_starts_at_a_multiple_of_four() -> None:
    frame = encode_frame({"kind": "é"}, {"a": np.ones(3, np.uint8), "b": np.array([7], np.int32)})
    (length,) = struct.unpack_from("<I", frame)
    assert length % 4 == 0
    assert json.loads(frame[4 : 4 + length])["arrays"] == [
        {"name": "a", "dtype": "u1", "shape": [3]},
        {"name": "b", "dtype": "i4", "shape": [1]},
    ]
    assert frame[4 + length :] == b"\x01\x01\x01\x00" + struct.pack("<i", 7)


def test_other_types_become_the_nearest_that_travels() -> None:
    arrays = {
        "double": np.array([0.1]),
        "long": np.array([3]),
        "flag": np.array([True]),
        "turned": np.arange(6.0, dtype=np.float32).reshape(2, 3).T,
    }
    _, found = decode(encode_frame({}, arrays))
    assert [found[name].dtype.str[1:] for name in arrays] == ["f4", "i4", "u1", "f4"]
    np.testing.assert_array_equal(found["turned"], arrays["turned"])
    with pytest.raises(InputError, match="expected numbers"):
        encode_frame({}, {"text": np.array(["a"])})


def test_numbers_that_json_cannot_say_are_null() -> None:
    header, _ = decode(encode_frame({"a": [float("nan"), np.float32("inf"), np.int64(3)]}, {}))
    assert header["a"] == [None, None, 3]


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (2, 40_000)])
def test_a_part_returns_what_was_quantized_and_holds_repeated_arrays_once(shape) -> None:
    values = np.random.default_rng(0).random(shape)
    values[..., :1] = np.nan
    odds, spread = quantize_log_odds(values), quantize(values, 16, 0.0, 1.0)
    arrays = {"odds": odds, "again": odds, "spread": spread, "exact": values, "twice": values}
    part = encode_report_part({"kind": "x"}, arrays)
    header, found = decode_part(part)
    assert header == {"kind": "x"}
    for name in arrays:
        within = 1e-7 if name in ("exact", "twice") else 1e-4
        np.testing.assert_allclose(found[name], values, rtol=0, atol=within)
    once = encode_report_part({}, {name: arrays[name] for name in ("odds", "spread", "exact")})
    assert len(part) < len(once) + 200
