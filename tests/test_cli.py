"""The command line: lazy commands, one line per mistake, clean endings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from heptascope import __version__, cli
from heptascope.commands import version
from heptascope.errors import UserError

COMMANDS = cli.LazyGroup().list_commands(click.Context(cli.heptascope))


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` in a fresh interpreter."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


def test_help_lists_every_command_with_its_purpose(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command module stands in the help with the first line of its docstring."""
    assert 0 == cli.run(["--help"])
    words = capsys.readouterr().out.split()
    assert set(COMMANDS) <= set(words)
    assert "effective" in words


def test_help_imports_no_command_and_no_library_of_one() -> None:
    """`heptascope --help` loads neither the web server nor a model library: it must be instant."""
    found = python(
        "import sys; from heptascope.cli import run; run(['--help'])\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('fastapi', 'uvicorn', 'pydantic', 'httpx', 'pynvml', 'rich')"
        " or m.startswith('heptascope.commands')))"
    )
    assert "[]" == found.stdout.splitlines()[-1]


def test_a_command_imports_only_what_it_needs() -> None:
    """`heptascope version` loads its own module and no other command's."""
    found = python(
        "import sys; from heptascope.cli import run; run(['version'])\nprint([m for m in sys.modules if 'heptascope.commands.' in m])"
    )
    assert [f"heptascope {__version__} (Python {sys.version.split()[0]})", "['heptascope.commands.version']"] == found.stdout.splitlines()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each module in commands/ offers a command that explains itself."""
    assert 0 == cli.run([name, "--help"])
    assert f"Usage: heptascope {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["explode"], "heptascope: No such command 'explode'; see heptascope --help"),
        (["config", "show", "--engin", "x"], "heptascope: No such option '--engin'"),
        (["config", "show", "--config", "/does/not/exist"], "heptascope: /does/not/exist: cannot read the file: No such file or directory"),
        (
            ["config", "show", "--gpu", "amd"],
            "heptascope: flag --gpu: gpu.source = amd: must be 'auto', 'dcgm', 'nvml', 'dcgm-exporter' or 'none'",
        ),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_status_2(argv: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither usage errors nor configuration errors print more than a line."""
    assert 2 == cli.run(argv)
    captured = capsys.readouterr()
    assert ("", 1) == (captured.out, captured.err.count("\n"))
    assert captured.err.startswith(expected)


@pytest.mark.parametrize("argv", [[], ["rules"], ["config"]])
def test_a_group_alone_shows_its_help(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Who types the name alone gets the commands below it, a line for each."""
    assert 0 == cli.run([*argv, "--help"])
    shown = capsys.readouterr().out
    assert (2, ("", shown)) == (cli.run(argv), capsys.readouterr())


def test_the_version_is_also_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    """`heptascope --version` says what `heptascope version` says."""
    said = [(cli.run(arguments), capsys.readouterr().out) for arguments in (["--version"], ["version"])]
    assert said[0] == said[1] == (0, f"heptascope {__version__} (Python {sys.version.split()[0]})\n")


def test_a_user_error_of_several_lines_becomes_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a library put into a message, the user gets one line."""

    @click.command()
    def failing() -> None:
        raise UserError("first\nsecond", where="here", hint="do this")

    monkeypatch.setattr(version, "command", failing)
    assert 2 == cli.run(["version"])
    assert "heptascope: here: first second; do this\n" == capsys.readouterr().err


@pytest.mark.parametrize(("ending", "status"), [(KeyboardInterrupt(), 130), (click.Abort(), 130)])
def test_ctrl_c_ends_without_a_traceback(
    ending: BaseException, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupted command says nothing (click ends the line of the ^C) and ends as shells expect."""

    @click.command()
    def interrupted() -> None:
        raise ending

    monkeypatch.setattr(version, "command", interrupted)
    assert status == cli.run(["version"])
    assert "" == capsys.readouterr().err.strip()


def test_a_closed_pipe_ends_quietly() -> None:
    """When the reader of the output has left, as `| head -1` does, the command ends without a word."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "heptascope", "config", "schema"]
    found = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(write_end)
    assert "" == found.stderr


def test_a_thread_that_hangs_does_not_hold_up_the_end() -> None:
    """A pool thread in a call that does not return would keep the interpreter waiting; the program ends with its status and its words."""
    found = python(
        "import threading; from heptascope.cli import main\nthreading.Thread(target=threading.Event().wait).start()\nmain(['version'])"
    )
    assert (0, "") == (found.returncode, found.stderr)
    assert found.stdout.startswith("heptascope ")


def test_the_status_of_a_command_is_the_status_of_the_process() -> None:
    """`python -m heptascope` is the same program; a command that returns 2 ends with 2."""
    found = subprocess.run([sys.executable, "-m", "heptascope", "nonsense"], capture_output=True, text=True, timeout=60, check=False)
    assert (2, "") == (found.returncode, found.stdout)


def test_the_schema_describes_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """`config schema` prints a JSON schema that refuses unknown keys and knows durations as text."""
    assert 0 == cli.run(["config", "schema"])
    schema = json.loads(capsys.readouterr().out)
    assert False is schema["additionalProperties"]
    assert ["string", "number"] == schema["$defs"]["GpuSettings"]["properties"]["interval"]["type"]


def test_config_show_says_where_a_value_came_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flag, a variable of the environment and a line of the file each stand behind their values."""
    path = tmp_path / "h.yaml"
    path.write_text("host:\n  enabled: false\n")
    monkeypatch.setenv("HEPTASCOPE_GPU_INTERVAL", "250ms")
    assert 0 == cli.run(["config", "show", "--config", str(path), "--listen", ":1"])
    origins = {line.split("#")[0].strip(): line.split("# ")[1] for line in capsys.readouterr().out.splitlines() if "#" in line}
    assert "flag --listen" == origins["listen: :1"]
    assert "environment variable HEPTASCOPE_GPU_INTERVAL" == origins["interval: 250ms"]
    assert f"{path}:2" == origins["enabled: false"]
