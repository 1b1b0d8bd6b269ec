"""`orbical check`: a gate for continuous integration, from a stored scan and a few thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..store.scan_result import Scan

Measured = Callable[["Scan", int], dict[str, float]]

SHORTCUTS = (
    "max_gap",
    "min_accuracy",
    "min_worst_accuracy",
    "max_accuracy_drop",
    "max_ece",
    "max_worst_ece",
    "max_pooled_ece",
    "max_ks",
    "max_mahalanobis",
    "max_worst_mahalanobis",
    "max_bleed",
    "min_score",
    "max_score",
)
"""Thresholds that have an option of their own; `--max` and `--min` take all others."""

_ALIASES = {"mahalanobis": "mahalanobis_calibration", "bleed": "aleatoric_bleed"}


@dataclass(frozen=True)
class Rule:
    """A threshold that can be set: what it is of, and how that is measured."""

    name: str
    what: str
    measure: Measured

    @property
    def upper(self) -> bool:
        """Whether the threshold is the largest value allowed."""
        return self.name.startswith("max_")

    @property
    def option(self) -> str:
        """The option that sets it."""
        if self.name in SHORTCUTS:
            return "--" + self.name.replace("_", "-")
        side, _, name = self.name.partition("_")
        return f"--{side} {name}"


@dataclass(frozen=True)
class Verdict:
    """A rule applied to one model."""

    rule: Rule
    model: str
    value: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the value is within the threshold; NaN never is."""
        return self.value <= self.limit if self.rule.upper else self.value >= self.limit

    def line(self) -> str:
        """Describe the verdict in one line."""
        sign = "<=" if self.rule.upper else ">="
        state = "ok  " if self.passed else "FAIL"
        return (
            f"{state} {self.model}: {self.rule.what} {self.value:.4g}, threshold {sign} "
            f"{self.limit:g} ({self.rule.option})"
        )


def rule_named(name: str) -> Rule:
    """Return the rule of a name such as `max_ece`, `max_worst_ks` or `max_pooled_smooth_ece`.

    After `max_` or `min_` stand "gap", "accuracy_drop", "score", or any registered measure, the
    last two with "worst_", "identity_" or "pooled_" before them for another place than the mean
    over the orbit.
    """
    from ..calibration import MEASURES, PLACES, measures
    from ..errors import unknown_name

    side, _, rest = name.partition("_")
    if side in ("max", "min") and rest == "gap":
        return Rule(name, "invariance gap", _gap)
    if side in ("max", "min") and rest == "accuracy_drop":
        return Rule(name, "loss of accuracy from the identity to the worst element", _drop)
    place, _, measure = rest.partition("_")
    if rest in MEASURES or place not in PLACES:
        place, measure = "mean", rest
    measure = _ALIASES.get(measure, measure)
    variables = {"accuracy": "correct", "score": "score"} if place != "pooled" else {}
    if side not in ("max", "min") or measure not in {*MEASURES, *variables}:
        side = side if side in ("max", "min") else "max"
        kinds = ("pair", "regression", "aleatoric")
        known = {f"{side}_{entry.name}" for entry in measures(*kinds)}
        raise unknown_name("check", name, known | {*SHORTCUTS})
    title = MEASURES[measure].title if measure in MEASURES else measure
    what = f"{title} {PLACES[place]}" if place != "mean" else f"{title}, {PLACES[place]}"
    if measure in variables:
        return Rule(name, what, _at(place, variables[measure]))
    return Rule(name, what, _calibration(place, measure))


def _by_model(values: Any) -> dict[str, float]:
    names = (str(name) for name in values["model"].values)
    return dict(zip(names, map(float, values.values), strict=True))


def _gap(scan: Scan, bins: int) -> dict[str, float]:
    from ..nero import invariance_gap

    return _by_model(invariance_gap(scan)["total"])


def _at(place: str, metric: str) -> Measured:
    """Measure a metric of `orbical.nero` at one place."""

    def measure(scan: Scan, bins: int) -> dict[str, float]:
        from ..errors import InputError
        from ..nero import aggregate

        if metric not in scan.data:
            raise InputError(f"check: expected labeled data, got a scan without {metric!r}")
        return _placed(aggregate(scan, metric=metric).compute(), place, scan)

    return measure


def _calibration(place: str, name: str) -> Measured:
    """Measure a registered measure at one place."""

    def measure(scan: Scan, bins: int) -> dict[str, float]:
        from ..calibration import MEASURES, along_orbit, pooled_over_orbit, scan_measures
        from ..errors import InputError

        entry = MEASURES[name]
        if entry not in scan_measures(scan):
            kinds = {"pair": "classification", "outputs": "classification, by its outputs"}
            kind = kinds.get(entry.kind, "regression with uncertainty")
            raise InputError(f"check: expected a labeled scan of {kind} for {name}")
        options = entry.accepted({"bins": bins})
        if place == "pooled":
            return _by_model(pooled_over_orbit(scan, entry, **options))
        return _placed(along_orbit(scan, entry, **options), place, scan)

    return measure


def _placed(curve: Any, place: str, scan: Scan) -> dict[str, float]:
    if place == "identity":
        return _by_model(curve.isel(element=scan.group.identity))
    if place == "mean":
        return _by_model(curve.weighted(curve["weight"]).mean("element"))
    better = curve.attrs.get("higher_is_better", True)
    return _by_model(curve.min("element") if better else curve.max("element"))


def _drop(scan: Scan, bins: int) -> dict[str, float]:
    upright = _at("identity", "correct")(scan, bins)
    worst = _at("worst", "correct")(scan, bins)
    return {model: upright[model] - worst[model] for model in upright}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


def check(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="A stored scan, such as run.zarr.")
    ],
    max_gap: Annotated[float | None, typer.Option(help="Largest invariance gap.")] = None,
    min_accuracy: Annotated[
        float | None, typer.Option(help="Smallest accuracy, mean over the orbit.")
    ] = None,
    min_worst_accuracy: Annotated[
        float | None, typer.Option(help="Smallest accuracy at the worst element.")
    ] = None,
    max_accuracy_drop: Annotated[
        float | None,
        typer.Option(help="Largest loss of accuracy from the identity to the worst element."),
    ] = None,
    max_ece: Annotated[
        float | None, typer.Option(help="Largest calibration error, mean over the orbit.")
    ] = None,
    max_worst_ece: Annotated[
        float | None, typer.Option(help="Largest calibration error at the worst element.")
    ] = None,
    max_pooled_ece: Annotated[
        float | None, typer.Option(help="Largest calibration error, pooled over the orbit.")
    ] = None,
    max_ks: Annotated[
        float | None, typer.Option(help="Largest KS calibration error, mean over the orbit.")
    ] = None,
    max_mahalanobis: Annotated[
        float | None,
        typer.Option(help="Largest Mahalanobis calibration error, mean over the orbit."),
    ] = None,
    max_worst_mahalanobis: Annotated[
        float | None,
        typer.Option(help="Largest Mahalanobis calibration error at the worst element."),
    ] = None,
    max_bleed: Annotated[
        float | None, typer.Option(help="Largest aleatoric bleed of noise-free targets.")
    ] = None,
    min_score: Annotated[
        float | None, typer.Option(help="Smallest score, mean over the orbit.")
    ] = None,
    max_score: Annotated[
        float | None, typer.Option(help="Largest score, mean over the orbit.")
    ] = None,
    max_: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            metavar="NAME=VALUE",
            help="Largest value of any registered measure, mean over the orbit, such as "
            "smooth_ece=0.05; worst_smooth_ece, pooled_smooth_ece or identity_smooth_ece for "
            "another place. Repeatable.",
        ),
    ] = None,
    min_: Annotated[
        list[str] | None,
        typer.Option("--min", metavar="NAME=VALUE", help="Smallest value, as --max. Repeatable."),
    ] = None,
    bins: Annotated[int | None, typer.Option(help="Number of bins of binned measures.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Check only this model. Repeatable.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="A TOML file with tool.orbical.check; ./pyproject.toml by default."),
    ] = None,
) -> None:
    """Check a scan against thresholds, for CI. Exits with status 1 if any fails.

    \b
    orbical check run.zarr --max-gap 0.02 --min-accuracy 0.9
    orbical check run.zarr --max smooth_ece=0.05 --max worst_ks=0.1

    Thresholds can also be set in the table [tool.orbical.check] of pyproject.toml, for example
    max_gap = 0.02. Options on the command line take precedence.
    """
    from ..store.scan_result import load

    given = {name: value for name, value in locals().items() if name in SHORTCUTS}
    given |= _thresholds("max", max_) | _thresholds("min", min_)
    settings = settings_from(config)
    limits = limits_from(given, settings)
    verdicts = judge(load(store), limits, _bins(bins, settings), model)
    if junit is not None:
        junit.parent.mkdir(parents=True, exist_ok=True)
        junit.write_text(junit_xml(verdicts, str(store)), encoding="utf-8")
    for verdict in verdicts:
        typer.secho(verdict.line(), fg=None if verdict.passed else "red")
    failed = sum(not verdict.passed for verdict in verdicts)
    if failed:
        typer.echo(f"{failed} of {len(verdicts)} checks failed")
        raise typer.Exit(1)


def _thresholds(side: str, given: list[str] | None) -> dict[str, float | None]:
    """Read thresholds written as NAME=VALUE."""
    from ..errors import InputError

    found: dict[str, float | None] = {}
    for text in given or []:
        name, _, number = text.partition("=")
        try:
            found[f"{side}_{name.strip().replace('-', '_')}"] = float(number)
        except ValueError:
            raise InputError(f"--{side}: expected NAME=VALUE, got {text!r}") from None
    return found


def settings_from(path: Path | None) -> dict[str, Any]:
    """Read the table `[tool.orbical.check]`; an absent default file is an empty table."""
    import tomllib

    from ..errors import InputError

    chosen = path or Path("pyproject.toml")
    if not chosen.is_file():
        if path is not None:
            raise InputError(f"--config: expected a file, got {path}")
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
                f"{chosen}: expected the table [tool.orbical.check], got {name} = {table!r}"
            )
    return {str(name).replace("-", "_"): value for name, value in table.items()}


def limits_from(given: Mapping[str, float | None], settings: Mapping[str, Any]) -> dict[str, float]:
    """Merge the thresholds of the command line and of the settings; the former take precedence.

    >>> limits_from({"max_gap": 0.1, "max_ece": None}, {"max_gap": 1, "max_ece": 0.05})
    {'max_gap': 0.1, 'max_ece': 0.05}
    """
    from ..errors import InputError

    limits: dict[str, float] = {}
    for name, value in settings.items():
        if name == "bins":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"tool.orbical.check: expected a number for {name}, got {value!r}")
        limits[name] = float(value)
    limits |= {name: float(value) for name, value in given.items() if value is not None}
    for name, value in limits.items():
        rule_named(name)
        if not math.isfinite(value):
            raise InputError(f"{name}: expected a finite number, got {value}")
    if not limits:
        options = ", ".join(rule_named(name).option for name in SHORTCUTS)
        raise InputError(f"check: expected a threshold, got none; set {options}, --max or --min")
    return limits


def _bins(given: int | None, settings: Mapping[str, Any]) -> int:
    from ..calibration.inputs import whole_number

    return whole_number("bins", settings.get("bins", 15) if given is None else given)


def judge(
    scan: Scan, limits: Mapping[str, float], bins: int = 15, models: list[str] | None = None
) -> list[Verdict]:
    """Apply each threshold to each model of a finished scan."""
    from ..errors import StoreError, unknown_name

    if not scan.complete:
        raise StoreError(
            f"check: expected a finished scan, got one that is {scan.share_done:.0%} done; "
            "finish it first"
        )
    for name in models or []:
        if name not in scan.models:
            raise unknown_name("--model", name, scan.models)
    rules = [(rule_named(name), limit) for name, limit in limits.items()]
    return [
        Verdict(rule, model, value, limit)
        for rule, limit in rules
        for model, value in rule.measure(scan, bins).items()
        if not models or model in models
    ]


def junit_xml(verdicts: list[Verdict], suite: str) -> str:
    """Write verdicts as JUnit XML, a test case for each rule and model."""
    from xml.etree import ElementTree

    failed = sum(not verdict.passed for verdict in verdicts)
    root = ElementTree.Element(
        "testsuite", name=f"orbical check {suite}", tests=str(len(verdicts)), failures=str(failed)
    )
    for verdict in verdicts:
        case = ElementTree.SubElement(
            root, "testcase", classname=verdict.model, name=verdict.rule.name
        )
        if not verdict.passed:
            ElementTree.SubElement(case, "failure", message=verdict.line())
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
