"""A scan that is being written, in a real browser: the page follows it."""

from __future__ import annotations

import torch
from reader import expect

SECTIONS = ("aggregate", "embedding", "individual", "input", "detail")


def write(path, part):
    """Scan one part of three of some digits."""
    import orbical as ob

    images, labels = ob.datasets.digits()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10)).eval()
    ob.scan(
        {"net": net},
        (images[:24], labels[:24]),
        group="rotations:8",
        task="classification",
        out=path,
        chunk=8,
        keep="inputs",
        part=f"{part}/3",
        progress=False,
    )


def test_the_page_follows_a_scan_until_it_is_finished(tmp_path, paged, monkeypatch):
    from orbical.interface import open_session
    from orbical.interface.server import Server
    from orbical.interface.session import following

    monkeypatch.setattr(following, "LEAST_BETWEEN_S", 0.0)
    write(tmp_path / "run.zarr", 1)
    server = Server(open_session(tmp_path / "run.zarr"), port=0)
    server.start()
    try:
        page = paged(server.url, sections=SECTIONS)
        tab = page.tab
        expect(tab.locator(".preview .share")).to_contain_text("33 % of 24 samples")
        expect(tab.locator(".preview .found")).to_contain_text("33% done")
        for absent in ("Stop", "Settings"):
            expect(tab.locator(f".preview button:text('{absent}')")).to_be_hidden()
        expect(tab.locator(".aggregate .note")).to_have_text("mean of 8 of 24 images")
        expect(tab.locator(".headline")).to_contain_text("correct")
        write(tmp_path / "run.zarr", 2)
        expect(tab.locator(".aggregate .note")).to_have_text("mean of 16 of 24 images")
        expect(tab.locator(".preview .share")).to_contain_text("66 % of 24 samples · ")
        write(tmp_path / "run.zarr", 3)
        expect(tab.locator(".aggregate .note")).to_have_text("mean of 24 images")
        expect(tab.locator(".preview")).to_be_hidden()
    finally:
        server.stop()
