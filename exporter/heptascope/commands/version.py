"""Print the version."""

from __future__ import annotations

import platform

import click

from heptascope import __version__


@click.command()
def command() -> None:
    """Print the version."""
    click.echo(f"heptascope {__version__} (Python {platform.python_version()})")
