"""The locks of the image: they fit pyproject.toml, every entry has its hashes, and every licence is known."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import Distribution
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from support.dockerfile import ROOT, script

DOCKER = ROOT / "docker"
LICENSES = script("licenses.py")
EXTRAS = ("interpreter", "kubernetes", "trace")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}( \\)?")
PERMISSIVE = {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "MIT", "MPL-2.0", "PSF-2.0", "Zlib"}


def project() -> Any:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def entries(name: str) -> list[tuple[Requirement, list[str]]]:
    """Return each pin of a lock with the lines of its hashes."""
    found: list[tuple[Requirement, list[str]]] = []
    for line in (DOCKER / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            found[-1][1].append(line.strip())
        elif not line.startswith("#"):
            found.append((Requirement(line.removesuffix("\\").strip()), []))
    return found


def pins(name: str) -> dict[str, list[Version]]:
    """Return the versions of each package in a lock."""
    found: dict[str, list[Version]] = {}
    for requirement, _ in entries(name):
        (specifier,) = requirement.specifier
        found.setdefault(requirement.name, []).append(Version(specifier.version))
    return found


@pytest.mark.parametrize("name", ["requirements.lock", "build.lock"])
def test_every_entry_is_pinned_and_hashed(name: str) -> None:
    """A lock names one exact version per package and Python, with the hashes of its files."""
    for requirement, hashes in entries(name):
        assert ["=="] == [specifier.operator for specifier in requirement.specifier], requirement
        assert hashes, requirement
        assert [] == [line for line in hashes if not HASH.fullmatch(line)], requirement


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (
            "requirements.lock",
            [*project()["project"]["dependencies"], *(r for e in EXTRAS for r in project()["project"]["optional-dependencies"][e])],
        ),
        ("build.lock", [*project()["build-system"]["requires"], "uv"]),
    ],
    ids=["requirements", "build"],
)
def test_the_lock_fits_the_project(name: str, wanted: list[str]) -> None:
    """What pyproject.toml asks for is locked at a version that it allows; run docker/lock if not."""
    locked = pins(name)
    for text in wanted:
        requirement = Requirement(text)
        assert requirement.name in locked, text
        assert [] == [str(v) for v in locked[requirement.name] if v not in requirement.specifier], text


def test_the_list_of_licences_is_that_of_the_lock() -> None:
    """docker/LICENSES.md names every locked package with its locked versions, and no other."""
    rows = [line.split(" | ") for line in LICENSES.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][2:]
    listed = {row[0].removeprefix("| "): row[1].split(", ") for row in rows}
    assert LICENSES.locked(LICENSES.LOCK.read_text(encoding="utf-8")) == listed


def test_every_licence_lets_the_image_be_given_away() -> None:
    """Only permissive licences, and one weak copyleft for a file of certificates, are in the list."""
    text = LICENSES.PAGE.read_text(encoding="utf-8")
    found = {part for line in text.splitlines() if line.startswith("| ") for part in line.rstrip(" |").rpartition(" | ")[2].split(" AND ")}
    assert set() == found - PERMISSIVE - {"licence", "---"}


def test_licences_come_from_metadata() -> None:
    """The list is what the metadata of the installed packages says, for the packages that are installed here too."""
    text = "certifi==1 \\\nuvicorn==2 ; python_version < '4'\nuvicorn==3\n"
    found = LICENSES.page(text, {d.name: d for d in map(Distribution.from_name, ("certifi", "uvicorn"))})
    assert ["| certifi | 1 | MPL-2.0 |", "| uvicorn | 2, 3 | BSD-3-Clause |"] == found.splitlines()[-2:]
