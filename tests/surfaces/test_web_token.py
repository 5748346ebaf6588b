"""Reading the token."""

from __future__ import annotations

from pathlib import Path

import pytest

from heptascope.config import WebSettings
from heptascope.errors import UserError
from heptascope.surfaces.web.token import read_token


def test_no_token() -> None:
    """Without a configured token there is none."""
    assert "" == read_token(WebSettings())


def test_token_from_the_settings() -> None:
    """The token itself may be configured."""
    assert "s3cret-token" == read_token(WebSettings.model_validate({"token": "s3cret-token"}))


def test_token_from_a_file(tmp_path: Path) -> None:
    """A file holds the token; the line's end does not belong to it."""
    file = tmp_path / "token"
    file.write_text("s3cret-token\n")
    assert "s3cret-token" == read_token(WebSettings(token_file=file))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file"),
        (b"\xff\xfe", "not a text file"),
        (b"short\n", "fewer than 8"),
        (b"two words here", "a header cannot carry"),
        ("größer als acht".encode(), "a header cannot carry"),
    ],
)
def test_unusable_token_files(tmp_path: Path, content: bytes | None, problem: str) -> None:
    """One line names the file and what is wrong with it."""
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=problem) as caught:
        read_token(WebSettings(token_file=file))
    assert f"web.token_file {file}" == caught.value.where
