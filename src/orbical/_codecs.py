"""Which codecs of Zarr are used: those that compute with numbers and text, and run no code."""

from __future__ import annotations

_PLAIN = (
    "adler32 astype bitround blosc bytes bz2 crc32 crc32c delta endian fixedscaleoffset fletcher32 "
    "gzip jenkins_lookup3 lz4 lzma packbits quantize sharding_indexed shuffle transpose vlen-utf8 "
    "zlib zstd"
)
KNOWN = {prefix + name for name in _PLAIN.split() for prefix in ("", "numcodecs.")}
_NAMED = ("codecs", "index_codecs", "compressor", "filters", "storage_transformers")
_FREE = ("attributes", ".zattrs")  # the user's own


def check_codecs(document: object) -> None:
    """Refuse metadata of Zarr that name another codec, before Zarr reads them.

    Zarr loads any codec that some installed package offers, and one of them unpickles.

    >>> check_codecs({"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle"}]})
    Traceback (most recent call last):
    ValueError: the codec 'numcodecs.pickle' is not used by orbical
    """
    if isinstance(document, list):
        for one in document:
            check_codecs(one)
    if not isinstance(document, dict):
        return
    for key, value in document.items():
        if str(key).endswith(_FREE):
            continue
        if key in _NAMED:
            for codec in value if isinstance(value, list) else [value]:
                name = codec.get("name", codec.get("id")) if isinstance(codec, dict) else codec
                if name is not None and name not in KNOWN:
                    raise ValueError(f"the codec {name!r} is not used by orbical")
        check_codecs(value)
