"""Judge recordings, faster than real time, and compare the verdicts with their labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from heptascope import logs
from heptascope.commands._options import config_options, configuration
from heptascope.commands.demo import Demo, announce
from heptascope.config import Settings
from heptascope.demo.scenarios import scenario_of
from heptascope.errors import UserError
from heptascope.labels import Match, compare
from heptascope.offline import judge_recording
from heptascope.service import serve
from heptascope.sources.recording import Recording, find_recordings
from heptascope.surfaces.report import summary_text, verdict_lines


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Text, or JSON Lines.")
@click.option("--full", is_flag=True, help="With text: the whole report of each recording.")
@click.option("--listen", metavar="HOST:PORT", help="Instead of printing, play them in a loop and serve the page; it has a picker.")
@config_options("config")
def command(paths: tuple[Path, ...], form: str, full: bool, listen: str | None, **options: Any) -> int:
    """Replay each recording (or every recording inside a folder) through the live path and print the verdict of its steady window.

    Where a recording has a label, the verdict is compared with it. Exit status 1 if any is a wrong page or a miss.
    """
    settings = configuration(listen=listen, **options).settings
    if listen is not None:
        _show(paths, settings)
        return 0
    counts: Counter[Match | None] = Counter()
    for found in (result for path in paths for result in _judge(path, settings)):
        counts[Match(found["match"]) if found["match"] else None] += 1
        if form == "json":
            click.echo(json.dumps(found))
        else:
            _print(found, full=full)
    _summarise(counts, form)
    return 1 if counts[Match.WRONG_PAGE] or counts[Match.MISSED] else 0


def _show(paths: tuple[Path, ...], settings: Settings) -> None:
    """Serve the recordings as a demo does."""
    logs.set_up(settings.log)
    known = [scenario_of(Recording.open(folder)) for path in paths for folder in find_recordings(path)]
    serve(Demo(settings, known[:1], 1.0, click.echo, known), settings, announce)


def _judge(path: Path, settings: Settings) -> Iterator[dict[str, Any]]:
    for folder in find_recordings(path):
        recording = Recording.open(folder)
        verdict = judge_recording(recording, settings)
        match = compare(verdict, recording.label) if recording.label is not None else None
        yield {
            "recording": str(folder.resolve().name),
            "expected": recording.label,
            "verdict": verdict,
            "match": match.value if match is not None else None,
            "damage": recording.damage,
        }


def _print(found: dict[str, Any], *, full: bool) -> None:
    label = found["expected"]
    click.echo(f"{found['recording']}: {summary_text(found['verdict'])}" + (f"  [{found['match']}]" if found["match"] else ""))
    if label is not None and found["match"] != Match.RIGHT.value:
        click.echo(f"  expected: {'|'.join(label.get('state', []))}, limiter {'|'.join(label.get('limiter', [])) or '-'}, "
                   f"faults {'|'.join(label.get('fault', [])) or '-'}: {label.get('why', '')}")  # fmt: skip
    for line in found["damage"]:
        click.echo(f"  damaged: {line}")
    if full:
        for line in verdict_lines(found["verdict"]):
            click.echo(f"  {line}".rstrip())
        click.echo()


def _summarise(counts: Counter[Match | None], form: str) -> None:
    summary = {
        "right": counts[Match.RIGHT],
        "wrong_pages": counts[Match.WRONG_PAGE],
        "missed": counts[Match.MISSED],
        "cannot_tell": counts[Match.CANNOT_TELL],
        "without_label": counts[None],
    }
    if not counts.total():
        raise UserError("no recording was judged")
    if form == "json":
        click.echo(json.dumps({"summary": summary}))
        return
    line = (
        f"{summary['right']} right, {summary['wrong_pages']} wrong pages, {summary['missed']} missed, {summary['cannot_tell']} cannot tell"
    )
    click.echo(line + (f" ({summary['without_label']} without a label)" if summary["without_label"] else ""))
