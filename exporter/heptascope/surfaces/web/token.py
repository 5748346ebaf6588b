"""The token that guards the pages."""

from __future__ import annotations

from heptascope.config import WebSettings
from heptascope.errors import UserError

MIN_LENGTH = 8


def read_token(settings: WebSettings) -> str:
    """Return the configured token, or "" if none is. Raises UserError if its file is unreadable, or the token too short or not ASCII."""
    if settings.token_file is None:
        token, where = settings.token.get_secret_value() if settings.token else "", "web.token"
    else:
        where = f"web.token_file {settings.token_file}"
        try:
            token = settings.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as exc:
            problem = exc.strerror if isinstance(exc, OSError) else "not a text file"
            raise UserError(f"cannot be read: {problem}", where=where, hint="give a file that holds the token alone") from exc
        if len(token) < MIN_LENGTH:
            raise UserError(f"the token has fewer than {MIN_LENGTH} characters", where=where)
    if not token.isascii() or any(char.isspace() for char in token):
        raise UserError("the token holds characters that a header cannot carry", where=where, hint="use letters, digits and punctuation")
    return token
