"""Fill the hand-written page of a study with numbers, and cut it into the page and its protocol."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from orbical.errors import InputError

from .formatting import FILTERS
from .paths import Paths
from .results import Results
from .study import Study


def render(study: Study, results: Results, template: Path) -> str:
    """Render a study's page from its results.

    Args:
        study: The study.
        results: Its tables.
        template: A Markdown file with jinja2 expressions that use the study's facts by their
            names, and the filters of `formatting`.

    Returns:
        The page. A name that the template uses and the study does not give is refused, and so is
        a fact that the template does not use.
    """
    import jinja2
    from jinja2 import meta

    if not template.is_file():
        raise InputError("page", problem=f"there is no template {str(template)!r}")
    facts = study.facts(results)
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown, not HTML
    )
    environment.filters.update(FILTERS)
    text = template.read_text(encoding="utf-8")
    try:
        unused = set(facts) - meta.find_undeclared_variables(environment.parse(text))
        page = environment.from_string(text).render(facts)
    except jinja2.TemplateError as error:
        raise InputError("page", problem=f"{template.name}: {error}") from error
    if unused:
        raise InputError(
            "page", problem=f"{template.name} does not use {', '.join(sorted(unused))}"
        )
    return page


def write_page(
    study: Study, results: Results, paths: Paths, *, figures: bool = True
) -> Iterator[Path]:
    """Write the page and its figures, and yield each file as it is written."""
    text = render(study, results, paths.template)
    for path, part in zip((paths.page, paths.protocol), parted(text, study.name), strict=True):
        if part:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(part, encoding="utf-8")
            yield path
    for name, figure in study.figures(results) if figures else ():
        from orbical.figures import save

        if f"({study.name}/{name})" not in text:
            raise InputError(
                "page", problem=f"{paths.template.name} does not show the figure {name!r}"
            )
        path = save(figure, paths.figures / name)
        yield path if study.palette is None else _with_palette(path, study.palette)


CUT = "\n<!-- protocol -->\n"
LINK = re.compile(r"(?<=\]\()([^)#]*)(#[^)]*)?(?=\))")


def parted(text: str, name: str) -> tuple[str, str]:
    """Cut a rendered page at the line `<!-- protocol -->`, and mend the links between the parts.

    Args:
        text: The whole text; without the line all of it is the page.
        name: Of the study; the protocol is `NAME/protocol.md` beside the page.

    Example:
        >>> page, protocol = parted(
        ...     "# Tides\\n\\n[rules](#rules)\\n<!-- protocol -->\\n## Rules\\n![](tides/a.png)\\n",
        ...     "tides",
        ... )
        >>> print(page.splitlines()[-1], protocol.splitlines()[-1])
        [rules](tides/protocol.md#rules) ![](a.png)
    """
    front, cut, rest = text.partition(CUT)
    if not cut:
        return text, ""
    title = front.partition("\n")[0]
    own, others = anchors(front), anchors(rest)

    def on_page(link: re.Match[str]) -> str:
        path, part = link[1], link[2] or ""
        moved = not path and part not in own and part in others
        return f"{name}/protocol.md{part}" if moved else path + part

    def on_protocol(link: re.Match[str]) -> str:
        path, part = link[1], link[2] or ""
        if re.match(r"\w+:", path):
            return path + part
        if not path:
            return part if part in others else f"../{name}.md{part}"
        return (
            path.removeprefix(f"{name}/") if path.startswith(f"{name}/") else f"../{path}"
        ) + part

    back = "studies" if name == "index" else "finding"
    head = f"# Protocol: {title[2:]}\n\n[Back to the {back}](../{name}.md)\n\n"
    return LINK.sub(on_page, front), head + LINK.sub(on_protocol, rest)


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a text, each with its number sign.

    >>> sorted(anchors("# The paper's regime\\n\\n### Fig. 5: λ\\n"))
    ['#fig-5', '#the-papers-regime']
    """
    found = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        plain = re.sub(r"[^\w\s-]", "", plain).strip().lower()
        found.add("#" + re.sub(r"[-\s]+", "-", plain))
    return found


def _with_palette(path: Path, colors: int) -> Path:
    """Reduce a picture to a palette, which takes about a third of the space."""
    from PIL import Image

    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(colors)
    reduced.save(path, optimize=True)
    return path
