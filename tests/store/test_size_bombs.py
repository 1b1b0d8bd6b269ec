"""Small stores that declare large things are refused before anything large is made."""

from __future__ import annotations

import json
import pickle
import resource
from pathlib import Path

import numpy as np
import pytest
from attacks_on_stores import sealed_root, small_store
from google_crc32c import value as crc32c
from numcodecs import Blosc

import orbical as ob
from orbical.errors import InputError, StoreError
from orbical.store import open_store
from orbical.store.checksums_and_units import checksum, json_digest


def of_record(change):
    def of_root(document):
        about = json.loads(document["attributes"]["orbical"])
        change(about["record"], document["consolidated_metadata"]["metadata"])
        document["attributes"]["orbical"] = json.dumps(about)

    return of_root


def many_units(record, arrays):
    record["data"]["samples"], record["run"]["chunk"] = 3_000_000, 2
    for one in arrays.values():
        dims = one.get("dimension_names") or []
        if "sample" in dims:
            one["shape"][dims.index("sample")] = 3_000_000


def many_models(record, arrays):
    record["models"] = record["models"][:1] * 200_000
    for one in arrays.values():
        if (one.get("dimension_names") or [""])[0] == "model":
            one["shape"][0] = 200_000


def heavy_weights(record, arrays):
    for one in arrays.values():
        dims = one.get("dimension_names") or []
        if "element" in dims:
            one["shape"][dims.index("element")] = 10**10
            one["chunk_grid"]["configuration"]["chunk_shape"][dims.index("element")] = 10**8


def heavy_group(record, arrays):
    one = arrays["group/weights"]
    one["shape"] = [2**31]
    one["chunk_grid"]["configuration"]["chunk_shape"] = [2**31]


def pickled(record, arrays):
    arrays["score"]["codecs"] = [{"name": "numcodecs.pickle", "configuration": {}}]


@pytest.mark.parametrize("change", [many_units, many_models, heavy_weights, heavy_group, pickled])
def test_declared_sizes_are_refused(tmp_path, change):
    path = tmp_path / "run.zarr"
    small_store(path)
    sealed_root(path, of_record(change))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(StoreError, match="too damaged to read"):
        ob.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "kB"


def packed(size, stated=None, damaged=False):
    """A chunk of zeros that ends with a valid checksum, whatever else is wrong with it."""
    content = bytearray(Blosc("zstd", 9).encode(np.zeros(size, np.uint8)))
    content[4:8] = (size if stated is None else stated).to_bytes(4, "little")
    if damaged:
        content[2] = 0b1110_0000  # an unknown compressor
    return bytes(content) + crc32c(bytes(content)).to_bytes(4, "little")


SCORES = 4 * 2 * 3  # bytes of a chunk of scores
PACKED = {
    "much": packed(SCORES, stated=2**31 - 100),
    "little": packed(3),
    "damaged": packed(SCORES, damaged=True),
}


@pytest.mark.parametrize("content", PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("where", ["score", "weight"])
@pytest.mark.parametrize("read", ["data", "blocks", "verify"])
def test_chunks_that_unpack_to_another_size_are_refused(tmp_path, content, where, read):
    path = tmp_path / "run.zarr"
    small_store(path)
    if where == "weight":
        (path / "weight" / "c" / "0").write_bytes(content)

        def change(document):
            about = json.loads(document["attributes"]["orbical"])
            about["files"]["weight"] = {"0": checksum(content)}
            document["attributes"]["orbical"] = json.dumps(about)

        sealed_root(path, change)
    else:
        store = open_store(path)
        (path / store.chunk_key("score", 0, 0)).write_bytes(content)
        mark = path / "units" / store.units[0, 0]
        unit = json.loads(mark.read_text())
        del unit["checksum"]
        unit["files"]["score"] = checksum(content)
        mark.write_text(json.dumps(unit | {"checksum": json_digest(unit)}))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if read == "verify":
        ob.load(path).verify()  # it reads the files and unpacks none
    else:
        with pytest.raises(StoreError, match="is damaged"):  # noqa: PT012
            scan = ob.load(path)
            scan.data.load() if read == "data" else scan.read("score", 0, 0)
            scan.data["weight"].load()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "kB"


@pytest.mark.parametrize("name", ["zarr.json", "score/zarr.json", "mark", "score/c/0/0/0"])
def test_files_that_are_larger_than_any_are_not_read(tmp_path, name):
    path = tmp_path / "run.zarr"
    small_store(path)
    file = path / (f"units/{open_store(path).units[0, 0]}" if name == "mark" else name)
    with file.open("r+b") as opened:
        opened.truncate(1 << 34)  # which takes no room on the disk
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if name == "mark":
        with pytest.warns(UserWarning, match="no valid mark"):
            assert not ob.load(path).done[0, 0]
    else:
        with pytest.raises(StoreError, match="damaged"):
            ob.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "kB"


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_data_with_a_codec_that_runs_code_are_refused(tmp_path, version):
    zarr = pytest.importorskip("zarr")
    path, ran = tmp_path / "data.zarr", tmp_path / "ran"
    zarr.save_array(path, np.ones((4, 1, 8, 8)), zarr_format=version)
    assert len(ob.data.open_path(path)) == 4, "sound data are read"
    file = path / ("zarr.json" if version == 3 else ".zarray")
    about = json.loads(file.read_text())
    if version == 3:
        about["codecs"] = [{"name": "numcodecs.pickle", "configuration": {}}]
    else:
        about |= {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 5}], "compressor": None}
    file.write_text(json.dumps(about))
    chunk = next(one for one in path.rglob("*") if one.is_file() and one != file)
    chunk.write_bytes(pickle.dumps(Touch(ran)))
    with pytest.raises(InputError, match=r"the codec '(numcodecs\.)?pickle' is not used"):
        ob.scan(lambda x: x.flatten(1)[:, :3], path, group="cyclic:4", task="classification")
    assert not ran.exists()


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)
