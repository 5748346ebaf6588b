"""Reads docker/Dockerfile as a list of stages, far enough for the tests."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "docker" / "Dockerfile"
_STAGE = re.compile(r"^(\S+)(?:\s+AS\s+(\S+))?$")


@dataclass
class Stage:
    """One stage: what it starts from, and its instructions in order."""

    name: str
    base: str
    lines: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """Return the arguments of every such instruction."""
        return [arguments for word, arguments in self.lines if word == instruction]

    def last(self, instruction: str) -> str:
        """Return the arguments of the last such instruction."""
        return self.all(instruction)[-1]

    def exec_form(self, instruction: str) -> list[str]:
        """Return the words of an ENTRYPOINT or CMD in exec form; fails for the shell form."""
        words: list[str] = json.loads(self.last(instruction))
        return words

    def environment(self) -> dict[str, str]:
        """Return what ENV sets."""
        return dict(word.partition("=")[::2] for arguments in self.all("ENV") for word in shlex.split(arguments))


def instructions(text: str) -> list[tuple[str, str]]:
    """Return instruction and arguments of every line, continued lines joined, comments left out."""
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = code.replace("\\\n", " ")
    pairs = (line.strip().partition(" ") for line in joined.splitlines() if line.strip())
    return [(word.upper(), " ".join(arguments.split())) for word, _, arguments in pairs]


def stages(text: str | None = None) -> list[Stage]:
    """Return the stages of `text`, of docker/Dockerfile by default."""
    found: list[Stage] = []
    for word, arguments in instructions(DOCKERFILE.read_text(encoding="utf-8") if text is None else text):
        match = _STAGE.match(arguments) if word == "FROM" else None
        if match:
            found.append(Stage(match[2] or "", match[1]))
        elif found:
            found[-1].lines.append((word, arguments))
    return found


def stage(name: str) -> Stage:
    """Return the stage of this name."""
    return next(found for found in stages() if found.name == name)


def script(name: str) -> Any:
    """Return a Python file of docker/ as a module."""
    spec = importlib.util.spec_from_file_location(f"docker_{name.removesuffix('.py')}", ROOT / "docker" / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
