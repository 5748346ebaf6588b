"""The log: one line per event, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from heptascope import logs
from heptascope.config import LogSettings


def test_text_is_one_line_with_time_level_and_room(capsys: pytest.CaptureFixture[str]) -> None:
    """A message of several lines, as engines and drivers have them, is one line of text."""
    logs.set_up(LogSettings())
    logging.getLogger("heptascope.sources.runner").warning("source %s is down:\n%s", "x", "bad")
    line = capsys.readouterr().err
    assert line.endswith("Z WARNING sources.runner: source x is down: bad\n")
    assert 1 == line.count("\n")


def test_json_is_one_object_with_the_traceback_inside(capsys: pytest.CaptureFixture[str]) -> None:
    """Even a traceback stays on its event's line."""
    logs.set_up(LogSettings(format="json"))
    try:
        raise KeyError("x")
    except KeyError:
        logging.getLogger("heptascope.daemon").exception("a step failed")
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert ("error", "heptascope.daemon", "a step failed") == (event["level"], event["logger"], event["message"])
    assert "KeyError: 'x'" in event["traceback"]


def test_the_level_is_ours_and_libraries_only_warn(capsys: pytest.CaptureFixture[str]) -> None:
    """At debug our own messages appear, those of libraries still only from warnings on."""
    logs.set_up(LogSettings(level="debug"))
    logging.getLogger("heptascope.x").debug("ours")
    logging.getLogger("httpcore").info("theirs")
    logging.getLogger("httpcore").warning("trouble")
    assert ["ours", "trouble"] == [line.rpartition(": ")[2] for line in capsys.readouterr().err.splitlines()]


def test_a_traceback_is_shown_in_text_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """At debug level a traceback follows its line."""
    logs.set_up(LogSettings(level="debug"))
    try:
        raise KeyError("x")
    except KeyError:
        logging.getLogger("heptascope.x").debug("why", exc_info=sys.exc_info())
    assert capsys.readouterr().err.splitlines()[1].startswith("Traceback")
