"""What can be changed when rules are rendered: a values file, then `--set key=value`.

Both speak the same keys. `judge`, `window`, `hold`, `job`, `workload_label`, `runbooks`, `slo` and `receivers` hold for everything;
`rules.NAME` (with `--set` also just `NAME`) changes one alert: any of its thresholds, `severity`, `for`, `enabled`, and `window` of those
that look at the window.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, ValidationInfo, field_validator

from heptascope.config import SloSettings
from heptascope.errors import UserError
from heptascope.quantities import Duration
from heptascope.surfaces.alerts.model import POD
from heptascope.surfaces.alerts.overrides import LONGEST_HOLD_SECONDS, OTHERS, Override, override
from heptascope.yaml_marks import KeyPath, read_yaml

RUNBOOKS = "https://github.com/heptascope/heptascope/blob/main/alerts/runbooks"
JOB = "heptascope"
WORKLOAD = "workload"
_SLO = SloSettings()
_TAKEN = (*POD, "engine", "rank", "gpu", "model", "layer", "rule", "slo", "le")
"""Labels that rules already group by."""


def _http(value: str) -> str:
    if not value.startswith(("http://", "https://")) or not urlsplit(value).hostname:
        raise ValueError("not a URL; write https://...")
    return value.rstrip("/")


def _free(value: str) -> str:
    if value in _TAKEN:
        raise ValueError("a label of something else; choose one that names the deployment")
    return value


Url = Annotated[str, AfterValidator(_http)]
LabelName = Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$"), AfterValidator(_free)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Objective(_Section):
    """A share of requests that has to be good."""

    objective: float = Field(0.999, gt=0, lt=1, description="Share of requests that must be answered without an error of the server.")


class LatencyObjective(_Section):
    """A latency and the share of events that must not take longer."""

    seconds: Duration = Field(gt=0, description="The promise; a bucket of the engine's histogram must end exactly here.")
    objective: float = Field(0.99, gt=0, lt=1, description="Share of events that must be within it.")


class Slo(_Section):
    """The service level objectives. The seconds are those of the exporter's own configuration unless changed."""

    time_to_first_token: LatencyObjective = LatencyObjective(seconds=_SLO.time_to_first_token)
    inter_token_latency: LatencyObjective = LatencyObjective(seconds=_SLO.inter_token_latency)
    availability: Objective = Objective()

    @field_validator("time_to_first_token", "inter_token_latency", mode="before")
    @classmethod
    def _usual_seconds(cls, value: Any, info: ValidationInfo) -> Any:
        """Let one of the two numbers be changed alone."""
        return {"seconds": getattr(_SLO, str(info.field_name)), **value} if isinstance(value, dict) else value


def promised(slo: SloSettings) -> Slo:
    """Return the objectives with the latencies that an exporter's configuration promises."""
    usual = Slo()
    return Slo(
        time_to_first_token=usual.time_to_first_token.model_copy(update={"seconds": slo.time_to_first_token}),
        inter_token_latency=usual.inter_token_latency.model_copy(update={"seconds": slo.inter_token_latency}),
    )


class Receivers(_Section):
    """Webhooks of the example configuration of Alertmanager, by how urgent they are."""

    page: Url = Field("http://alerts.example/page", description="Wakes someone: critical.")
    ticket: Url = Field("http://alerts.example/ticket", description="Office hours: warning.")
    context: Url = Field("http://alerts.example/context", description="A channel to look at beside an incident: info.")


class RenderSettings(_Section):
    """Everything that can be changed."""

    judge: Literal["prometheus", "sidecar"] = Field(
        "prometheus", description="Who evaluates the catalogue's expressions: Prometheus, or the sidecars, whose findings are then counted."
    )
    window: Duration = Field(300.0, ge=1, le=21600, description="Range that `[$window]` stands for; at least four scrape intervals.")
    hold: Duration | None = Field(
        None, ge=0, le=LONGEST_HOLD_SECONDS, description="`for` of every catalogue alert; default: each rule's own."
    )
    job: str = Field(JOB, min_length=1, pattern=r'^[^"\\\n]+$', description="Value of the label `job` of the exporters.")
    workload_label: LabelName = Field(WORKLOAD, description="Label that names a pod's deployment, set when scraping.")
    runbooks: Url = Field(RUNBOOKS, description="Where the runbook pages are.")
    slo: Slo = Slo()
    receivers: Receivers = Receivers()
    rules: Mapping[str, Mapping[str, Any]] = Field({}, description="Changes to single alerts.")
    _origins: Mapping[KeyPath, str] = PrivateAttr(default_factory=dict)

    def override(self, name: str, thresholds: Iterable[str], *, window: bool = False) -> Override:
        """Return the changes to the alert `name`, which has these thresholds, and a window or none. Raises UserError for others."""
        return override(name, self.rules.get(name, {}), list(thresholds), self.origin, window=window)

    def switched_off(self) -> set[str]:
        """Return the names of alerts that are not rendered."""
        return {name for name, changes in self.rules.items() if changes.get("enabled", True) is False}

    def thresholds(self) -> dict[str, dict[str, float]]:
        """Return the changed thresholds by alert and name, once `override` has found no fault with them."""
        return {name: {key: float(value) for key, value in changes.items() if key not in OTHERS} for name, changes in self.rules.items()}

    def origin(self, name: str, key: str = "") -> str:
        """Return where a change to an alert came from: file and line, or the flag."""
        paths = (("rules", name, key), ("rules", name))
        return next((self._origins[path] for path in paths if path in self._origins), f"rules.{name}.{key}".rstrip("."))

    def check_names(self, names: Iterable[str]) -> None:
        """Raise UserError if a change is meant for an alert that there is not."""
        known = list(names)
        for name in self.rules:
            if name not in known:
                raise UserError(f"no such alert {name!r}", where=self.origin(name), hint=suggest(name, known))


def load_settings(values: Path | None = None, changes: Iterable[str] = ()) -> RenderSettings:
    """Return the settings of a values file with `key=value` changes. Raises UserError: one line with the place, key and remedy."""
    merged: dict[str, Any] = {}
    origins: dict[KeyPath, str] = {}
    if values is not None:
        marked = read_yaml(values)
        merged = marked.value
        origins = {path: f"{values}:{line}" for path, line in marked.lines.items()}
    for change in changes:
        path, value = _change(change)
        section: Any = merged
        for part in path[:-1]:
            section = section.setdefault(part, {})
            if not isinstance(section, dict):
                raise UserError(f"{part!r} is no section", where=f"--set {change}")
        section[path[-1]] = value
        origins |= {path[:n]: f"--set {change}" for n in range(len(path), 0, -1) if path[:n] not in origins or n == len(path)}
    try:
        settings = RenderSettings.model_validate(merged)
    except ValidationError as exc:
        raise _one_line(exc, origins) from exc
    settings._origins = origins
    return settings


def _change(text: str) -> tuple[tuple[str, ...], Any]:
    key, equals, value = text.partition("=")
    parts = tuple(key.strip().split("."))
    if not equals or not all(parts):
        raise UserError("cannot read this change", where=f"--set {text}", hint="write RULE.threshold=number or key=value")
    if parts[0] not in RenderSettings.model_fields and parts[0][:1].isupper():
        parts = ("rules", *parts)
    try:
        return parts, yaml.safe_load(value)
    except yaml.YAMLError as exc:
        raise UserError(f"cannot read the value {value!r}", where=f"--set {text}") from exc


def _one_line(exc: ValidationError, origins: Mapping[KeyPath, str]) -> UserError:
    first = exc.errors(include_url=False)[0]
    path = tuple(first["loc"])
    where = next((origins[path[:n]] for n in range(len(path), 0, -1) if path[:n] in origins), ".".join(map(str, path)))
    key = ".".join(map(str, path))
    if first["type"] == "extra_forbidden":
        return UserError(f"unknown key {key!r}", where=where, hint=suggest(str(path[-1]), list(_keys(path[:-1]))))
    if first["type"] == "model_type":
        return UserError(f"{key} is not a section", where=where, hint=f"allowed below it: {', '.join(_keys(path))}")
    message, _, hint = first["msg"].removeprefix("Value error, ").partition("; ")
    return UserError(f"{key}: {message.replace('Input should be', 'must be')}", where=where, hint=hint)


def _keys(path: KeyPath) -> Iterator[str]:
    model: type[BaseModel] = RenderSettings
    for part in path:
        inner = model.model_fields[str(part)].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return
        model = inner
    yield from model.model_fields


def suggest(word: str, allowed: list[str]) -> str:
    """Return which word was meant, or which are allowed."""
    close = difflib.get_close_matches(word, allowed, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"allowed: {', '.join(allowed)}"
