"""Adapters that users write: a YAML file says where signals stand on an engine's page. docs/engines.md has an example."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from heptascope.errors import UserError
from heptascope.model import Quality
from heptascope.sources.engine.adapter import Question, Told, adapters
from heptascope.sources.engine.names import HISTOGRAMS, LABELS, OPTIONAL, SETTINGS, SIGNALS
from heptascope.sources.engine.page import family_key
from heptascope.sources.engine.table import Facts, Read, Row, Table, Take, product, quotient
from heptascope.sources.engine.tabled import TableAdapter, numbers, span_by, texts
from heptascope.yaml_marks import KeyPath, read_yaml

_READS: Mapping[str, tuple[Read, ...]] = {
    "histogram": (Read.HISTOGRAM,),
    "counter": (Read.COUNTER, Read.CUMULATIVE, Read.RISES, Read.COUNT, Read.SUM),
    "gauge": (Read.GAUGE, Read.RATIO),
}
_JOINS: Mapping[str, Callable[[Sequence[float]], float | None]] = {"sum": sum, "quotient": quotient, "product": product}


def _several(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_several)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class _Row(_Section):
    """Where one signal stands."""

    signal: str
    families: Names = Field(min_length=1)
    read: Read
    instead: tuple[Names, ...] = ()
    join: Literal["sum", "quotient", "product"] = "sum"
    only: Mapping[str, str | tuple[str, ...]] = {}
    keep: Mapping[str, str] = {}
    always: Mapping[str, str] = {}
    scale: float = Field(1.0, gt=0, allow_inf_nan=False)
    quality: Quality = Quality.EXACT

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.signal not in SIGNALS + OPTIONAL:
            raise ValueError(f"there is no engine signal {self.signal!r}; docs/metrics.md lists them, here without heptascope_engine_")
        allowed = _READS[_kind(self.signal)]
        if self.read not in allowed:
            raise ValueError(f"{self.signal} is a {_kind(self.signal)}; read it as {' or '.join(allowed)}")
        wanted = set(LABELS.get(self.signal, ()))
        given = {*self.keep.values(), *self.always}
        if given != wanted:
            told = f"the label {' and '.join(sorted(wanted))}" if wanted else "no further label"
            raise ValueError(f"{self.signal} has {told}; fit keep (label on the page: ours) and always (ours: value)")
        return self

    def row(self) -> Row:
        """Return the row of the table."""
        takes = tuple(Take(names, dict(self.only), self.scale, _JOINS[self.join]) for names in (self.families, *self.instead))
        return Row(self.signal, self.read, takes, dict(self.keep), always=dict(self.always), quality=self._quality)

    def _quality(self, _facts: Facts) -> Quality:
        return self.quality


class _Info(_Section):
    """A page in JSON that tells about the engine: dotted paths to what it says."""

    path: str = Field(pattern="^/")
    version: str = ""
    model: str = ""
    settings: Mapping[str, str] = {}
    config: Mapping[str, str] = {}

    @model_validator(mode="after")
    def _known(self) -> Self:
        unknown = sorted(set(self.settings) - set(SETTINGS))
        if unknown:
            raise ValueError(f"there is no setting {unknown[0]!r}; use one of {', '.join(SETTINGS)}")
        return self

    def read(self, answer: Any) -> Told:
        """Return what an answer tells."""
        found = {ours: _at(answer, path) for ours, path in (*self.settings.items(), *self.config.items())}
        return Told(
            str(_at(answer, self.version) or ""),
            str(_at(answer, self.model) or ""),
            numbers(found, {name: name for name in self.settings}),
            texts(found, {name: name for name in self.config}),
        )


class _Map(_Section):
    """The whole file."""

    kind: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,30}$")
    engine: str = Field(min_length=1)
    prefix: Names = Field(min_length=1)
    path: str = Field("/metrics", pattern="^/")
    rank_label: str = ""
    model_label: str = ""
    ignore: Names = ()
    info: _Info | None = None
    rows: tuple[_Row, ...] = Field(min_length=1)


def _kind(signal: str) -> str:
    return "histogram" if signal in HISTOGRAMS else "counter" if signal.endswith("_total") else "gauge"


def _at(answer: Any, path: str) -> Any:
    for key in path.split(".") if path else ():
        answer = answer.get(key) if isinstance(answer, Mapping) else None
    return answer if path else None


def map_adapter(path: Path) -> TableAdapter:
    """Return the adapter that a file describes. Raises UserError with file, line, key and what is allowed."""
    marked = read_yaml(path)
    try:
        found = _Map.model_validate(marked.value)
    except ValidationError as error:
        raise _one_line(path, error, marked.lines) from None
    if found.kind in adapters():
        raise UserError(f"kind {found.kind} is built in", where=f"{path}:{marked.lines[('kind',)]}", hint="choose another name")
    table = Table(
        found.engine,
        tuple(row.row() for row in found.rows),
        rank_label=found.rank_label,
        model_label=found.model_label,
        version=span_by({}),
        ignore=frozenset(found.ignore),
    )
    return TableAdapter(
        found.kind,
        table,
        prefixes=tuple(family_key(prefix) for prefix in found.prefix),
        paths=(found.path,),
        questions=(Question((found.info.path,), found.info.read),) if found.info else (),
    )


def _one_line(path: Path, error: ValidationError, lines: Mapping[KeyPath, int]) -> UserError:
    first = error.errors(include_url=False)[0]
    place: KeyPath = first["loc"]
    line = next((lines[place[:n]] for n in range(len(place), 0, -1) if place[:n] in lines), 1)
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")
    if first["type"] == "extra_forbidden":
        return UserError(f"unknown key {key!r}", where=f"{path}:{line}", hint="docs/engines.md lists the keys")
    text, _, hint = first["msg"].removeprefix("Value error, ").partition("; ")
    return UserError(f"{key}: {text}" if key else text, where=f"{path}:{line}", hint=hint)
