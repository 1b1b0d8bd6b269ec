"""The pictures of the PP-OCR audit, drawn from a scan of a reader that is not the network."""

import torch

from orbical_audits.models import pp_ocr


def test_the_surest_mirrored_lines_are_drawn_with_what_was_read(tmp_path):
    def read(ink):
        return ["license"] * len(ink), torch.full((len(ink),), 0.9)

    scan = pp_ocr.scanned(read, *pp_ocr.lines(0, 5), "flips", tmp_path / "scan.zarr")
    labels = [axes.get_xlabel() for axes in pp_ocr.drawn(read, scan).axes]
    assert labels == ["read: license   (confidence 0.90)"] * 5
