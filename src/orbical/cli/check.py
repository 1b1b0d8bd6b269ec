"""`orbical check`: a gate for continuous integration, from a stored scan and a few limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..store.scan_result import Scan

_BLEED = "aleatoric_bleed"
Measured = Callable[["Scan", int], dict[str, float]]


@dataclass(frozen=True)
class Rule:
    """A limit that can be set: how its number is measured, and on which side it must stay."""

    name: str
    what: str
    measure: Measured

    @property
    def upper(self) -> bool:
        """Whether the limit is the largest value allowed."""
        return self.name.startswith("max_")


@dataclass(frozen=True)
class Verdict:
    """A rule applied to one model."""

    rule: Rule
    model: str
    value: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the value keeps the limit; a value that is not a number does not."""
        return self.value <= self.limit if self.rule.upper else self.value >= self.limit

    def line(self) -> str:
        """Say it in one line."""
        sign = "<=" if self.rule.upper else ">="
        state = "ok  " if self.passed else "FAIL"
        option = "--" + self.rule.name.replace("_", "-")
        return (
            f"{state} {self.model}: {self.rule.what} {self.value:.4g}, limit {sign} {self.limit:g} "
            f"({option})"
        )


def _by_model(values: Any) -> dict[str, float]:
    names = (str(name) for name in values["model"].values)
    return dict(zip(names, map(float, values.values), strict=True))


def _gap(scan: Scan, bins: int) -> dict[str, float]:
    from ..nero import invariance_gap

    return _by_model(invariance_gap(scan)["total"])


def _at(position: str, metric: str) -> Measured:
    """Measure a metric of `orbical.nero` at one position: identity, orbit or worst."""

    def measure(scan: Scan, bins: int) -> dict[str, float]:
        from ..errors import InputError
        from ..nero import aggregate

        if metric not in scan.data:
            raise InputError(f"check: the scan holds no {metric!r}; expected labeled data")
        return _placed(aggregate(scan, metric=metric).compute(), position, scan)

    return measure


def _calibration(position: str, name: str) -> Measured:
    def measure(scan: Scan, bins: int) -> dict[str, float]:
        from ..calibration.measures import CLASSIFICATION
        from ..calibration.orbit import along_orbit
        from ..calibration.regression_orbit import holds_regression
        from ..errors import InputError

        if (name in CLASSIFICATION) == holds_regression(scan):
            kind = "classification" if name in CLASSIFICATION else "regression with uncertainty"
            raise InputError(f"check: {name} is measured in a labeled scan of {kind}")
        options: dict[str, Any] = {"bins": bins} if name == "ece" else {}
        return _placed(along_orbit(scan, name, **options), position, scan)

    return measure


def _placed(curve: Any, position: str, scan: Scan) -> dict[str, float]:
    if position == "identity":
        return _by_model(curve.isel(element=scan.group.identity))
    if position == "orbit":
        return _by_model(curve.weighted(curve["weight"]).mean("element"))
    better = curve.attrs.get("higher_is_better", True)
    return _by_model(curve.min("element") if better else curve.max("element"))


def _drop(scan: Scan, bins: int) -> dict[str, float]:
    upright = _at("identity", "correct")(scan, bins)
    worst = _at("worst", "correct")(scan, bins)
    return {model: upright[model] - worst[model] for model in upright}


RULES = {
    rule.name: rule
    for rule in (
        Rule("max_gap", "invariance gap", _gap),
        Rule("min_accuracy", "accuracy over the orbit", _at("orbit", "correct")),
        Rule("min_worst_accuracy", "accuracy at the worst element", _at("worst", "correct")),
        Rule("max_accuracy_drop", "loss of accuracy from identity to worst element", _drop),
        Rule("max_ece", "ECE over the orbit", _calibration("orbit", "ece")),
        Rule("max_worst_ece", "ECE at the worst element", _calibration("worst", "ece")),
        Rule("max_ks", "KS error over the orbit", _calibration("orbit", "ks")),
        Rule(
            "max_mahalanobis",
            "Mahalanobis calibration error over the orbit",
            _calibration("orbit", "mahalanobis_calibration"),
        ),
        Rule(
            "max_worst_mahalanobis",
            "Mahalanobis calibration error at the worst element",
            _calibration("worst", "mahalanobis_calibration"),
        ),
        Rule("max_bleed", "aleatoric bleed over the orbit", _calibration("orbit", _BLEED)),
        Rule("min_score", "score over the orbit", _at("orbit", "score")),
        Rule("max_score", "score over the orbit", _at("orbit", "score")),
    )
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


def check(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="A stored scan, such as run.zarr.")
    ],
    max_gap: Annotated[float | None, typer.Option(help="Largest invariance gap.")] = None,
    min_accuracy: Annotated[
        float | None, typer.Option(help="Least accuracy, mean over the orbit.")
    ] = None,
    min_worst_accuracy: Annotated[
        float | None, typer.Option(help="Least accuracy at the worst element.")
    ] = None,
    max_accuracy_drop: Annotated[
        float | None, typer.Option(help="Largest loss of accuracy, identity to worst element.")
    ] = None,
    max_ece: Annotated[
        float | None, typer.Option(help="Largest calibration error, mean over the orbit.")
    ] = None,
    max_worst_ece: Annotated[
        float | None, typer.Option(help="Largest calibration error at the worst element.")
    ] = None,
    max_ks: Annotated[
        float | None, typer.Option(help="Largest KS calibration error, mean over the orbit.")
    ] = None,
    max_mahalanobis: Annotated[
        float | None,
        typer.Option(help="Largest Mahalanobis calibration error of regressors, over the orbit."),
    ] = None,
    max_worst_mahalanobis: Annotated[
        float | None,
        typer.Option(help="Largest Mahalanobis calibration error at the worst element."),
    ] = None,
    max_bleed: Annotated[
        float | None, typer.Option(help="Largest aleatoric bleed of noise-free targets.")
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(help="Least score, mean over the orbit (higher is better).")
    ] = None,
    max_score: Annotated[
        float | None, typer.Option(help="Largest score, mean over the orbit (lower is better).")
    ] = None,
    bins: Annotated[int | None, typer.Option(help="Bins of the calibration error.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Check this model only. Repeatable.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file with tool.orbical.check; ./pyproject.toml by default."),
    ] = None,
) -> None:
    """Hold a scan against limits; exit status 1 if one is broken.

    \b
    orbical check run.zarr --max-gap 0.02 --min-accuracy 0.9

    Limits may also stand in the table [tool.orbical.check] of pyproject.toml, such as
    max_gap = 0.02; options on the command line come first.
    """
    from ..store.scan_result import load

    given = {name: value for name, value in locals().items() if name in RULES}
    settings = settings_from(config)
    limits = limits_from(given, settings)
    verdicts = judge(load(store), limits, _bins(bins, settings), model)
    if junit is not None:
        junit.parent.mkdir(parents=True, exist_ok=True)
        junit.write_text(junit_xml(verdicts, str(store)), encoding="utf-8")
    for verdict in verdicts:
        typer.secho(verdict.line(), fg=None if verdict.passed else "red")
    broken = sum(not verdict.passed for verdict in verdicts)
    if broken:
        typer.echo(f"{broken} of {len(verdicts)} limits broken")
        raise typer.Exit(1)


def settings_from(path: Path | None) -> dict[str, Any]:
    """Read the table `[tool.orbical.check]`; an absent default file is an empty table."""
    import tomllib

    from ..errors import InputError

    chosen = path or Path("pyproject.toml")
    if not chosen.is_file():
        if path is not None:
            raise InputError(f"--config: {path} is no file")
        return {}
    try:
        content = tomllib.loads(chosen.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{chosen}: cannot be read as TOML ({error})") from error
    table: Any = content
    for name in ("tool", "orbical", "check"):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise InputError(
                f"{chosen}: {name} = {table!r} given, expected the table [tool.orbical.check]"
            )
    return {str(name).replace("-", "_"): value for name, value in table.items()}


def limits_from(given: Mapping[str, float | None], settings: Mapping[str, Any]) -> dict[str, float]:
    """Join the limits of the command line and of the settings, the former first.

    >>> limits_from({"max_gap": 0.1, "max_ece": None}, {"max_ece": 0.05, "max_gap": 1})
    {'max_gap': 0.1, 'max_ece': 0.05}
    """
    from ..errors import InputError, unknown_name

    limits: dict[str, float] = {}
    for name, value in settings.items():
        if name == "bins":
            continue
        if name not in RULES:
            raise unknown_name("tool.orbical.check", name, [*RULES, "bins"])
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"tool.orbical.check: {name} = {value!r} given, a number expected")
        limits[name] = float(value)
    limits |= {name: float(value) for name, value in given.items() if value is not None}
    for name, value in limits.items():
        if not math.isfinite(value):
            raise InputError(f"{name}: {value} given, a finite number expected")
    if not limits:
        options = ", ".join("--" + name.replace("_", "-") for name in RULES)
        raise InputError(f"check: no limit given; expected one of {options}")
    return {name: limits[name] for name in RULES if name in limits}


def _bins(given: int | None, settings: Mapping[str, Any]) -> int:
    from ..calibration.binned import checked_bins

    return checked_bins(settings.get("bins", 15) if given is None else given)


def judge(
    scan: Scan, limits: Mapping[str, float], bins: int = 15, models: list[str] | None = None
) -> list[Verdict]:
    """Apply each limit to each model. An unfinished scan is refused: it would prove nothing."""
    from ..errors import StoreError, unknown_name

    if not scan.complete:
        raise StoreError(f"check: the scan is {scan.share_done:.0%} done; finish it first")
    for name in models or []:
        if name not in scan.models:
            raise unknown_name("--model", name, scan.models)
    return [
        Verdict(RULES[name], model, value, limit)
        for name, limit in limits.items()
        for model, value in RULES[name].measure(scan, bins).items()
        if not models or model in models
    ]


def junit_xml(verdicts: list[Verdict], suite: str) -> str:
    """Write verdicts as JUnit XML, a test case for each rule and model."""
    from xml.etree import ElementTree

    broken = sum(not verdict.passed for verdict in verdicts)
    root = ElementTree.Element(
        "testsuite", name=f"orbical check {suite}", tests=str(len(verdicts)), failures=str(broken)
    )
    for verdict in verdicts:
        case = ElementTree.SubElement(
            root, "testcase", classname=verdict.model, name=verdict.rule.name
        )
        if not verdict.passed:
            ElementTree.SubElement(case, "failure", message=verdict.line())
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
