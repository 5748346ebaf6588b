"""Variables of the boards: chained from the cluster to the GPU, each with "All", none with a fixed data source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.common import DataSourceRef

from boards.promql import PLACE, matchers
from heptascope.surfaces.alerts.settings import RUNBOOKS

SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
ALL: Final = ".*"
"""Value of "All": also matches series that do not have the label."""

Variable = Builder[model.VariableModel]


@dataclass(frozen=True, slots=True)
class _Listed:
    """A variable whose choices are the values of a label; `after` are the variables that narrow them."""

    label: str
    metric: str
    after: tuple[str, ...]
    about: str
    sort: model.VariableSort = model.VariableSort.ALPHABETICAL_ASC


_INFO, _ENGINE, _GPU = "heptascope_build_info", "heptascope_engine_info", "heptascope_gpu_info"
_LISTED: Final[Mapping[str, _Listed]] = {
    "cluster": _Listed("Cluster", _INFO, (), "Label cluster, if your Prometheus sets one."),
    "namespace": _Listed("Namespace", _INFO, PLACE[:1], "Kubernetes namespace."),
    "workload": _Listed("Deployment", _INFO, PLACE[:2], "Label workload: the deployment that owns the pod."),
    "job": _Listed("Job", _INFO, PLACE[:3], "Scrape job."),
    "model": _Listed("Model", _ENGINE, PLACE[:4], "Served model. It narrows pods and engines; a GPU has no model of its own."),
    "pod": _Listed("Pod", _ENGINE, (*PLACE[:4], "model"), "Pod with an engine."),
    "instance": _Listed("Instance", _INFO, PLACE[:5], "Address that is scraped; what tells machines apart without Kubernetes."),
    "engine": _Listed("Engine", _ENGINE, (*PLACE, "model"), "heptascope's name for an engine."),
    "gpu": _Listed("GPU", _GPU, PLACE, "Index of the GPU.", model.VariableSort.NUMERICAL_ASC),
}


def _listed(name: str, there: tuple[str, ...]) -> Variable:
    this = _LISTED[name]
    after = [other for other in this.after if other in there]
    metric = _INFO if this.metric == _ENGINE and "model" not in there else this.metric
    narrowed = metric + (matchers(*after) if after else "")
    query = f"label_values({narrowed}, {name})"
    variable = build.QueryVariable(name).label(this.label).description(this.about).query(query).definition(query).datasource(SOURCE)
    variable = variable.multi(True).include_all(True).all_value(ALL).refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(this.sort)
    return variable.current(model.VariableOption(selected=True, text=["All"], value=["$__all"]))


def _typed(name: str, label: str, value: str, about: str) -> Variable:
    chosen = model.VariableOption(selected=True, text=value, value=value)
    return build.TextBoxVariable(name).label(label).description(about).default_value(value).current(chosen).options([chosen])


def _source() -> Variable:
    return (
        build.DatasourceVariable("datasource")
        .label("Data source")
        .description("Prometheus, or what speaks its language.")
        .type("prometheus")
    )


def _runbooks() -> Variable:
    return (
        build.ConstantVariable("runbooks")
        .label("Runbooks")
        .description("Where the runbook pages are; change it to your own copy.")
        .value(RUNBOOKS)
    )


_OTHERS: Final[Mapping[str, Callable[[], Variable]]] = {
    "datasource": _source,
    "runbooks": _runbooks,
    "price_kwh": lambda: _typed(
        "price_kwh", "Price of a kWh", "0.15", "In your currency. Cooling and losses come on top: multiply by your PUE."
    ),
    "price_gpu_hour": lambda: _typed(
        "price_gpu_hour", "Price of a GPU-hour", "3", "In your currency: rent, or what the card costs you in an hour."
    ),
}

PLACES: Final = ("datasource", *PLACE[:4], "model", *PLACE[4:])
"""The variables that every board has, in their order."""


def variable(name: str, there: tuple[str, ...]) -> Variable:
    """Return a variable of a board that has the variables `there`. Raises KeyError for an unknown name."""
    return _listed(name, there) if name in _LISTED else _OTHERS[name]()
