"""Builds the parts of a daemon from the settings: the pipeline, and the choice of GPU sources."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from heptascope.config import GpuSettings, RulesSettings, Settings
from heptascope.errors import UserError
from heptascope.pipeline import Pipeline
from heptascope.rules.diagnose import Diagnoser
from heptascope.rules.judge import JudgeSettings
from heptascope.rules.load import load as load_catalogue
from heptascope.rules.rule import Rule
from heptascope.signals.ceilings import CardPeaks
from heptascope.signals.derive import DeriveSettings
from heptascope.signals.window import Window
from heptascope.sources.base import Source
from heptascope.sources.gpu import library
from heptascope.sources.gpu.nvml import nvml_sources

GpuChoice = Callable[[GpuSettings], Sequence[Source]]
"""Makes the sources of one way to read GPUs. Raises SourceError with the reason why it cannot be used here."""


def build_pipeline(settings: Settings, engine_gpus: Mapping[str, Sequence[str]]) -> Pipeline:
    """Return the pipeline for `settings`; `engine_gpus` (engine name to its GPUs) may grow while it runs. Raises UserError."""
    slo = settings.slo.model_dump(exclude_none=True)
    peaks = {model: CardPeaks(**peak.model_dump()) for model, peak in settings.peaks.items()}
    derive = DeriveSettings(window=settings.rules.window, engine_gpus=engine_gpus, peaks=peaks, slo_seconds=slo)
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
        by_name[name] = replace(rule, overridden=dict(thresholds))
    return tuple(by_name.values())


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


GPU_CHOICES: Mapping[str, tuple[GpuChoice, ...]] = {
    "auto": (_nvml_if_there,),
    "nvml": (_nvml,),
    "none": (),
}
"""For each value of `gpu.source`, the ways to read GPUs, best first."""
