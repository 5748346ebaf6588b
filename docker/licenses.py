"""Writes docker/LICENSES.md: the licence of everything that docker/requirements.lock names.

Usage: python docker/licenses.py PREFIX, an environment in which it is installed. `docker/lock` does so.
Licences come from the packages' own metadata (PEP 639 expression, else the classifiers, else the free text); where one says
nothing that can be read, `STATED` has what its repository says. A package without a licence is an error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

LOCK = Path(__file__).with_name("requirements.lock")
PAGE = Path(__file__).with_name("LICENSES.md")
PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)
CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-Clause",
    "License :: OSI Approved :: MIT License": "MIT",
    "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "License :: OSI Approved :: Python Software Foundation License": "PSF-2.0",
}
STATED: Mapping[str, str] = {"promql-parser": "MIT AND Apache-2.0"}  # its LICENSE, and the Rust parser inside it by its SBOM

_HEAD = """\
# Licences

What the image holds besides heptascope (Apache-2.0) and its base image: every package of `requirements.lock`, from the packages'
own metadata. The texts are in the image, in each package's folder `*.dist-info` below `/opt/heptascope`. Written by `docker/lock`.

| package | version | licence |
| --- | --- | --- |
"""


def locked(text: str) -> dict[str, list[str]]:
    """Return the versions of each package that a lock names; several if they depend on Python's version."""
    found: dict[str, list[str]] = {}
    for name, version in PIN.findall(text):
        found.setdefault(name.lower(), []).append(version)
    return found


def licence(package: Distribution) -> str:
    """Return the licence of a package as its metadata has it, as SPDX where that can be told; "" if it has none."""
    metadata = package.metadata
    expression = metadata.get("License-Expression", "")
    classified = [CLASSIFIERS[c] for c in metadata.get_all("Classifier", []) if c in CLASSIFIERS]
    return expression or " AND ".join(classified) or metadata.get("License", "").partition("\n")[0].strip()


def page(lock: str, installed: Mapping[str, Distribution]) -> str:
    """Return the list for `lock`. Raises KeyError for a package that is not installed or has no licence."""
    rows = []
    for name, versions in sorted(locked(lock).items()):
        found = STATED.get(name) or licence(installed[name])
        if not found:
            raise KeyError(f"{name} names no licence; read it and add it to STATED")
        rows.append(f"| {name} | {', '.join(versions)} | {found} |\n")
    return _HEAD + "".join(rows)


def installed_in(prefix: Path) -> dict[str, Distribution]:
    """Return the packages in an environment, by normalised name."""
    folders = [str(folder) for folder in prefix.glob("lib/python3*/site-packages")]
    return {re.sub(r"[-_.]+", "-", found.name).lower(): found for found in distributions(path=folders)}


if __name__ == "__main__":
    sys.stdout.write(page(LOCK.read_text(encoding="utf-8"), installed_in(Path(sys.argv[1]))))
