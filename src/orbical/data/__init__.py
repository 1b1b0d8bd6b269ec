"""Data of any kind, read as samples with names, labels and metadata columns.

`orbical.scan` takes arrays, torch data sets, Hugging Face data sets and paths as they are. The
classes here configure how images are read, and wrap streams and your own sources:

    photos = orbical.data.ImageFolder("photos/", size=224)
    orbical.scan(net, photos, group="rotations:72", task="classification")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy_exports

__all__ = [
    "HuggingFace", "ImageFolder", "ImagePreprocessing", "Questions", "Source", "Stream", "Table",
    "TextRecords", "open_path", "read_outputs",
]  # fmt: skip

if TYPE_CHECKING:
    from .array_files import read_npy, read_npz
    from .batching import padded
    from .hugging_face_data import HuggingFace
    from .image_files import ImageFiles, ImageFolder
    from .preprocessing import CHANNELS, LAYOUTS, SCALES, ImagePreprocessing, recorded_preprocessing
    from .samples import Rows, Samples, hash_of_rows, read_ahead, read_rows
    from .saved_outputs import read_outputs
    from .source import Source, hash_of
    from .sources import ARRAY_SUFFIXES, SUFFIXES, open_path
    from .streams import Stream
    from .subset import Chosen, spread_rows
    from .tables import Table
    from .texts import Questions, TextRecords
else:  # commands that only read an array file need not wait for torch
    __getattr__ = lazy_exports(
        __name__,
        {
            "array_files": ["read_npy", "read_npz"],
            "batching": ["padded"],
            "hugging_face_data": ["HuggingFace"],
            "image_files": ["ImageFiles", "ImageFolder"],
            "preprocessing": [
                "CHANNELS",
                "ImagePreprocessing",
                "LAYOUTS",
                "SCALES",
                "recorded_preprocessing",
            ],
            "samples": ["Rows", "Samples", "hash_of_rows", "read_ahead", "read_rows"],
            "saved_outputs": ["read_outputs"],
            "source": ["Source", "hash_of"],
            "sources": ["ARRAY_SUFFIXES", "SUFFIXES", "open_path"],
            "streams": ["Stream"],
            "subset": ["Chosen", "spread_rows"],
            "tables": ["Table"],
            "texts": ["Questions", "TextRecords"],
        },
    )
