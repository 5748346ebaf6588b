"""The log: one line per event on stderr, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from heptascope.config import LogSettings


class TextFormatter(logging.Formatter):
    """`2026-01-31T10:00:00.123Z WARNING runner: message`; a traceback, if one is asked for, follows."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = f"{_stamp(record)} {record.levelname:<7} {_room(record)}: {_message(record)}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object as one line."""
        event = {"time": _stamp(record), "level": record.levelname.lower(), "logger": record.name, "message": _message(record)}
        if record.exc_info:
            event["traceback"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)


def set_up(settings: LogSettings) -> None:
    """Send our log, and warnings of the libraries, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("heptascope").setLevel(settings.level.upper())


def _stamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _room(record: logging.LogRecord) -> str:
    return record.name.removeprefix("heptascope.")


def _message(record: logging.LogRecord) -> str:
    """Return the message on one line, whatever an engine or a driver put into it."""
    return " ".join(record.getMessage().split("\n"))
