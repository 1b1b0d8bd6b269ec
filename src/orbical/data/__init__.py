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
    "Frame", "HuggingFace", "ImageFolder", "ImagePreprocessing", "Nifti", "Questions", "Source",
    "Stream", "Table", "TextRecords", "open_path", "read_outputs",
]  # fmt: skip

if TYPE_CHECKING:
    from .array_files import OUTPUT_SUFFIXES, read_npy, read_npz, read_outputs
    from .array_source import ArrayFilePart, to_numpy
    from .hugging_face_data import HuggingFace
    from .image_files import ImageFiles, ImageFolder
    from .item_sources import Stream
    from .nifti_files import Nifti
    from .open_data import ARRAY_SUFFIXES, SUFFIXES, open_path
    from .preprocessing import (
        CHANNELS,
        LAYOUTS,
        SCALES,
        ImagePreprocessing,
        as_preprocessing,
        checked_preprocessing,
        preprocessing_of_scan,
        recorded_preprocessing,
    )
    from .samples import (
        ChosenSamples,
        SampleRows,
        Samples,
        hash_of_rows,
        read_rows,
        read_samples_ahead,
        spread_samples,
    )
    from .source import Source, data_hash, is_lazy, padded
    from .tables import Frame, Table
    from .texts import Questions, TextRecords
else:  # commands that only read an array file need not wait for torch
    __getattr__ = lazy_exports(
        __name__,
        {
            "array_files": "OUTPUT_SUFFIXES read_npy read_npz read_outputs",
            "array_source": "ArrayFilePart to_numpy",
            "hugging_face_data": "HuggingFace",
            "image_files": "ImageFiles ImageFolder",
            "nifti_files": "Nifti",
            "preprocessing": "CHANNELS ImagePreprocessing LAYOUTS SCALES as_preprocessing "
            "checked_preprocessing preprocessing_of_scan recorded_preprocessing",
            "samples": "ChosenSamples SampleRows Samples hash_of_rows read_rows read_samples_ahead "
            "spread_samples",
            "source": "Source data_hash is_lazy padded",
            "open_data": "ARRAY_SUFFIXES SUFFIXES open_path",
            "tables": "Frame Table",
            "texts": "Questions TextRecords",
            "item_sources": "Stream",
        },
    )
