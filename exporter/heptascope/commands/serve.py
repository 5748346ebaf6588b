"""Read GPUs, engines and the host, and serve metrics, a verdict and a page."""

from __future__ import annotations

from typing import Any

import click

from heptascope import logs
from heptascope.commands._options import ALL, config_options, configuration
from heptascope.service import Live, serve


@click.command()
@config_options(*ALL)
def command(**options: Any) -> None:
    """Read GPUs, engines and the host once a second, and serve /metrics, the verdict and a page until SIGTERM or Ctrl-C."""
    settings = configuration(**options).settings
    logs.set_up(settings.log)
    serve(Live(settings), settings)
