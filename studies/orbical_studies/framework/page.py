"""Fill the hand-written page of a study with numbers."""

from __future__ import annotations

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
    paths.page.parent.mkdir(parents=True, exist_ok=True)
    paths.page.write_text(text, encoding="utf-8")
    yield paths.page
    for name, figure in study.figures(results) if figures else ():
        from orbical.figures import save

        if f"({study.name}/{name})" not in text:
            raise InputError(
                "page", problem=f"{paths.template.name} does not show the figure {name!r}"
            )
        path = save(figure, paths.figures / name)
        yield path if study.palette is None else _with_palette(path, study.palette)


def _with_palette(path: Path, colors: int) -> Path:
    """Reduce a picture to a palette, which takes about a third of the space."""
    from PIL import Image

    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(colors)
    reduced.save(path, optimize=True)
    return path
