"""Builds the parts of a daemon from the settings: the pipeline, and the choice of GPU sources."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from heptascope.config import GpuSettings, RulesSettings, Settings
from heptascope.errors import UserError
from heptascope.model import Reason
from heptascope.pipeline import Pipeline
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.judge import JudgeSettings
from heptascope.rules.load import load as load_catalogue
from heptascope.rules.references import changed
from heptascope.rules.rule import Rule
from heptascope.signals.ceilings import CardPeaks
from heptascope.signals.derive import DeriveSettings
from heptascope.signals.window import Window
from heptascope.sources.base import Source, SourceError
from heptascope.sources.gpu import library
from heptascope.sources.gpu.dcgm import DcgmOptions, dcgm_sources
from heptascope.sources.gpu.dcgm_exporter import DcgmExporterSource
from heptascope.sources.gpu.nvml import nvml_sources

GpuChoice = Callable[[GpuSettings], Sequence[Source]]
"""Makes the sources of one way to read GPUs. Raises SourceError with the reason why it cannot be used here."""


def build_pipeline(settings: Settings, engine_gpus: Mapping[str, Sequence[str]]) -> Pipeline:
    """Return the pipeline for `settings`; `engine_gpus` (engine name to its GPUs) may grow while it runs. Raises UserError."""
    slo = settings.slo.model_dump(exclude_none=True)
    peaks = {model: CardPeaks(**peak.model_dump()) for model, peak in settings.peaks.items()}
    derive = DeriveSettings(settings.rules.window, engine_gpus, peaks, slo, settings.trace.engine or "")
    judge = Diagnoser(overridden_rules(load_catalogue(), settings.rules), JudgeSettings(window=settings.rules.window))
    return Pipeline(derive, judge, Window(settings.window.retention))


def overridden_rules(rules: Iterable[Rule], settings: RulesSettings) -> tuple[Rule, ...]:
    """Return the catalogue with the configured thresholds. Raises UserError for a rule or threshold that there is not."""
    by_name = {rule.name: rule for rule in rules}
    for name, thresholds in settings.overrides.items():
        rule = by_name.get(name)
        if rule is None:
            raise _unknown(f"rules.overrides.{name}", "no such rule", name, list(by_name))
        for threshold in thresholds:
            if threshold not in rule.thresholds:
                raise _unknown(f"rules.overrides.{name}.{threshold}", "the rule has no such threshold", threshold, list(rule.thresholds))
    return changed(by_name.values(), settings.overrides)


def _unknown(where: str, message: str, word: str, allowed: list[str]) -> UserError:
    close = difflib.get_close_matches(word, allowed, n=1)
    return UserError(message, where=where, hint=f"did you mean {close[0]}?" if close else f"there are: {', '.join(allowed)}")


def _nvml(settings: GpuSettings) -> Sequence[Source]:
    return nvml_sources(settings.interval, settings.slow_interval, settings.devices)


def _nvml_if_there(settings: GpuSettings) -> Sequence[Source]:
    """NVML, with GPM where the card has it, if its library can be started here."""
    module = library.load()
    library.start(module)
    with suppress(module.NVMLError):
        module.nvmlShutdown()
    return _nvml(settings)


def _dcgm_options(settings: GpuSettings) -> DcgmOptions:
    dcgm = settings.dcgm
    return DcgmOptions(dcgm.address or "", dcgm.socket, dcgm.bindings, dcgm.embedded, dcgm.profiling)


def _dcgm(settings: GpuSettings) -> Sequence[Source]:
    return dcgm_sources(_dcgm_options(settings), settings.interval, settings.slow_interval, settings.devices)


def _dcgm_if_there(settings: GpuSettings) -> Sequence[Source]:
    """DCGM, if a host engine answers and shows GPUs; it stays connected."""
    fast, slow = dcgm_sources(_dcgm_options(settings), settings.interval, settings.slow_interval, settings.devices)
    try:
        fast.probe()
    except SourceError:
        fast.close()
        slow.close()
        raise
    return fast, slow


def _dcgm_exporter(settings: GpuSettings) -> Sequence[Source]:
    exporter = settings.dcgm_exporter
    return (DcgmExporterSource(exporter.urls, settings.devices, unit=exporter.utilization),)


def _dcgm_exporter_if_configured(settings: GpuSettings) -> Sequence[Source]:
    """Read a dcgm-exporter, if one is configured and answers."""
    if not settings.dcgm_exporter.urls:
        raise SourceError(Reason.NO_SOURCE, "dcgm-exporter: gpu.dcgm_exporter.urls is not set")
    (source,) = sources = _dcgm_exporter(settings)
    try:
        source.read(time.time())
    except SourceError:
        source.close()
        raise
    return sources


GPU_CHOICES: Mapping[str, tuple[GpuChoice, ...]] = {
    "auto": (_dcgm_if_there, _nvml_if_there, _dcgm_exporter_if_configured),
    "dcgm": (_dcgm,),
    "dcgm-exporter": (_dcgm_exporter,),
    "nvml": (_nvml,),
    "none": (),
}
"""For each value of `gpu.source`, the ways to read GPUs, best first."""
