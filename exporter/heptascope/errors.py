"""Errors that a user can cause: one clear line each, never a traceback."""

from __future__ import annotations


class UserError(Exception):
    """What is wrong, where, and what to do, as one line.

    The command line prints it as `heptascope: <message>` and exits with `exit_code`.
    """

    exit_code = 2

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        """Join `where` (file:line, URL or field), `message` and `hint` (the remedy) into one line."""
        self.where, self.message, self.hint = where, message, hint
        line = f"{where}: {message}" if where else message
        super().__init__(f"{line}; {hint}" if hint else line)
