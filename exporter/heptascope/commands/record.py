"""Write what the sources read for a while, to replay it later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from heptascope import logs
from heptascope.commands._options import SOURCES, config_options, configuration, duration
from heptascope.errors import UserError
from heptascope.quantities import format_duration, format_size
from heptascope.service import Live, stop_signals
from heptascope.sources.segments import Limits


@click.command()
@click.option("--out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="New or empty folder for the recording.")
@click.option(
    "--for",
    "seconds",
    default="60s",
    callback=duration,
    metavar="TIME",
    show_default=True,
    help="How long to record; Ctrl-C ends it earlier.",
)
@config_options(*SOURCES)
def command(out: Path, seconds: float, **options: Any) -> int:
    """Write what the sources read into one recording, which `heptascope replay DIR` judges later and elsewhere."""
    settings = configuration(record=out, **options).settings
    logs.set_up(settings.log)
    live = Live(settings, Limits(settings.record.max_bytes, settings.record.min_free_bytes, segment_seconds=None))
    with stop_signals() as stopped:
        live.start()
        click.echo(f"recording to {out} for {format_duration(seconds)}; Ctrl-C ends it earlier")
        stopped.wait(seconds)
        statuses = live.daemon.statuses()
        live.stop()
    written = live.recording
    if written is None or not any(status.last_success for status in statuses):
        why = "; ".join(f"{status.name}: {status.message}" for status in statuses) or "there is no source"
        raise UserError(f"nothing was read: {why}", where=str(out))
    click.echo(f"{written.rows} rows, {format_size(written.bytes)}; next: heptascope replay {out}")
    if not written.writing or written.dropped:
        raise UserError(f"{written.dropped} rows are missing: {written.message or 'the disk is too slow'}", where=str(out))
    return 0
