"""`heptascope rules render`: write alerting rules, recording rules and an Alertmanager example from the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from heptascope.errors import UserError
from heptascope.rules.load import load
from heptascope.surfaces.alerts.pages import refreshed
from heptascope.surfaces.alerts.render import render
from heptascope.surfaces.alerts.settings import load_settings

OUT = Path("alerts")
KEYS = """\b
What --set and a values file can change (in the file, changes to single alerts stand below `rules:`):
  RULE.threshold=number  RULE.severity=critical  RULE.for=5m  RULE.window=10m  RULE.enabled=false
  judge=sidecar                      count the sidecars' findings instead of evaluating every expression (large fleets)
  window=5m                          range of the rules' rates and means
  hold=1m                            `for` of every catalogue alert; default: each rule's own
  job=heptascope                     label `job` of the exporters
  workload_label=workload            label that names a pod's deployment
  runbooks=URL                       where the runbook pages are
  slo.time_to_first_token.seconds=5  (.objective=0.99; also inter_token_latency, availability.objective)
  receivers.page=URL                 webhooks of the Alertmanager example (also ticket, context)
"""


@click.command("render", epilog=KEYS)
@click.option("--out", type=click.Path(path_type=Path), default=OUT, show_default=True, help="Folder to write to.")
@click.option("--set", "changes", metavar="KEY=VALUE", multiple=True, help="Change one thing, such as KVCachePreemption.severity=critical.")
@click.option("--values", metavar="FILE", type=click.Path(path_type=Path), help="YAML file with changes; --set goes before it.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 and name the files that are not current.")
def command(out: Path, changes: tuple[str, ...], values: Path | None, check: bool) -> int:
    """Write alerting rules, recording rules and an Alertmanager example from the catalogue.

    Where OUT has runbooks and a README, the parts of them that are made from the catalogue are brought up to date.
    """
    settings = load_settings(values, changes)
    texts = {out / path: text for path, text in render(load(), settings).items()}
    try:
        texts |= refreshed(out, load(), settings)
        stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    except OSError as exc:
        raise UserError(f"cannot read: {exc.strerror}", where=str(exc.filename)) from exc
    if check:
        for path in stale:
            click.echo(f"{path} is not current")
        return 1 if stale else 0
    _write({path: texts[path] for path in stale})
    click.echo(f"{len(texts)} files in {out}, {len(stale)} of them written")
    return 0


def _write(texts: Mapping[Path, str]) -> None:
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as exc:
            raise UserError(f"cannot write: {exc.strerror}", where=str(path)) from exc
