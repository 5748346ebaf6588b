"""The command line. Each module in `commands/` is one sub-command, imported only when it runs."""

from __future__ import annotations

import ast
import importlib
import os
import platform
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from heptascope import __version__
from heptascope.errors import UserError

COMMANDS = Path(__file__).parent / "commands"
EXIT_INTERRUPTED = 130  # 128 + SIGINT, what shells expect


class LazyGroup(click.Group):
    """Finds sub-commands by file name; a module `commands/x.py` offers `command`, and its docstring's first line is the help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names of all command modules."""
        return sorted(path.stem for path in COMMANDS.glob("[a-z]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"heptascope.commands.{cmd_name}").command
        assert isinstance(command, click.Command)  # noqa: S101  # the contract of a command module
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_line(COMMANDS / f"{name}.py")) for name in self.list_commands(ctx)])


def _first_line(source: Path) -> str:
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].rstrip(".")


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message=f"heptascope %(version)s (Python {platform.python_version()})")
def heptascope() -> None:
    """Tell which of seven layers an LLM server waits on, with the evidence and the next step."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 2 after a user's mistake, with one line on stderr."""
    status = run(argv)
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        # a call that does not return, such as a look at a port whose server hangs, must not hold up the end
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    try:
        result = heptascope.main(argv, prog_name="heptascope", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except UserError as exc:
        return _complain(str(exc), exc.exit_code)
    except click.exceptions.NoArgsIsHelpError as exc:  # a group alone: its help, as it is laid out
        click.echo(exc.format_message(), err=True)
        return UserError.exit_code
    except click.UsageError as exc:
        command = exc.ctx.command_path if exc.ctx else "heptascope"
        return _complain(f"{exc.format_message().rstrip('.')}; see {command} --help", UserError.exit_code)
    except click.ClickException as exc:
        return _complain(exc.format_message(), UserError.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED


def _complain(line: str, status: int) -> int:
    click.echo(f"heptascope: {' '.join(line.split())}", err=True)
    return status
