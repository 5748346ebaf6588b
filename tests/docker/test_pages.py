"""The pages on image and security say what is so: keys, files and variables that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heptascope.config_load import environment_variables
from heptascope.sources import pod
from support.dockerfile import ROOT

PAGES = [ROOT / "docs" / "security.md", ROOT / "docker" / "README.md"]
SECTIONS = ("gpu", "host", "record", "trace", "web")
ENVIRONMENT = re.compile(r"HEPTASCOPE_[A-Z_]*[A-Z]")
LINK = re.compile(r"\]\(([^)#:]+)(?:#([^)]+))?\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_key_that_is_named_exists(page: Path) -> None:
    """Configuration keys and environment variables on the page are those of the configuration."""
    text = page.read_text(encoding="utf-8")
    known = environment_variables()
    keys = {".".join(map(str, path)) for path in known.values()} | {"web.token.existingSecret", "web.tls.existingSecret"}
    named = {key for key in re.findall(r"`((?:\w+\.)+\w+)(?:: \w+)?`", text) if key.partition(".")[0] in SECTIONS}
    assert set() == named - keys
    assert set() == {name for name in ENVIRONMENT.findall(text) if name not in known} - {"HEPTASCOPE_IMAGE"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """Files that are linked exist, and so do the headings."""
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert links
    for file, heading in links:
        there = (page.parent / file).resolve()
        assert there.exists(), file
        assert not heading or heading in anchors(there), (file, heading)


def test_the_page_on_engines_has_every_group() -> None:
    """Each way to tell a group is on the page with its variables."""
    text = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    for manager in pod.MANAGERS:
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{manager.name}` |")]
        assert [] == [name for name in (manager.index_variable, manager.size_variable) if name and f"`{name}`" not in row], row
