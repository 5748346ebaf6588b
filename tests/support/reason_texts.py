"""Every text of the package by which a source, a derivation or a rule may say why something is missing, found in its code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import heptascope

_PACKAGE = Path(heptascope.__file__).parent
_SPEAKERS = (
    *("sources", "signals", "daemon.py", "seek.py", "service.py", "gpus.py"),
    *("rules/lacking.py", "rules/judge.py", "rules/promql_model.py", "rules/promql_operators.py"),
)
_SILENT = {  # commands read these, or a trace's report holds what they say
    *("sources/recorder.py", "sources/segments.py", "sources/jsonl.py", "sources/recording.py", "sources/prometheus_api.py"),
    *(f"sources/trace/{name}.py" for name in ("profiler", "capture_files", "compare", "kernel_table", "kineto", "columns", "run", "steps")),
}
_HELP = re.compile(r"signals/schema\w*\.py|sources/trace/kineto_event\.py")
_ELSEWHERE = re.compile(r"^(log\.\w+|re\.compile|ValueError|(.*\.)?notes\.append|.*\.note|.*\.execute|.*\._?(gpu|host)|field)$")
"""Calls whose texts go to a log, to a developer, to a trace's report, or are no texts for people."""
_REACHES_A_PAGE = {"sources/pod.py"}  # its ValueError becomes a reason
_STARTS_NOTHING = {"sources/engine/reader.py", "sources/engine/source.py", "sources/gpu/dcgm.py", "sources/gpu/nvml.py"}
"""Their UserErrors end the start of the program."""
_SENTENCE = re.compile(r"[a-z]{2,}[,;:)]? [a-z(`]|[a-z]{2,} [A-Z/]")
_NAME = re.compile(r"([A-Z0-9]\S*|\(\w+\)|\[%\])( ([A-Z0-9]\S*|\(\w+\)|\[%\]))*")
PLACE = "\0"
_NOT_SAID = {
    "text/plain, application/json;q=0.5",
    *("go on", "lose the GPU", "no profiling", "look again", "give up"),  # what is to be done about an error of DCGM
    f"{PLACE}, as gpu.source says",  # to the log
    "trailing characters",
    f"{PLACE}: later kernels are missing",  # to a trace's report
    f"{PLACE} shares of peak below 0 or far above 1 were left out",
}


def reason_texts() -> dict[str, str]:
    """Return each text with where it stands; `PLACE` stands for what is filled in."""
    found: dict[str, str] = {}
    for file in _files():
        name = file.relative_to(_PACKAGE).as_posix()
        for text, line in _texts(ast.parse(file.read_text(encoding="utf-8")), name, ""):
            found.setdefault(text, f"{name}:{line}")
    return found


def _files() -> Iterator[Path]:
    for speaker in _SPEAKERS:
        path = _PACKAGE / speaker
        for file in sorted(path.rglob("*.py")) if path.is_dir() else (path,):
            name = file.relative_to(_PACKAGE).as_posix()
            if name not in _SILENT and not _HELP.fullmatch(name):
                yield file


def _texts(node: ast.AST, file: str, call: str) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    text = _text(node)
    if text is not None:
        if _SENTENCE.search(text) and not _NAME.fullmatch(text) and text not in _NOT_SAID:
            yield text, node.lineno  # type: ignore[attr-defined]  # expressions have one
        inner = node.values if isinstance(node, ast.JoinedStr) else []
        for part in inner:
            if isinstance(part, ast.FormattedValue):
                yield from _texts(part.value, file, call)
        return
    if isinstance(node, ast.Call):
        call = ast.unparse(node.func)
        if _goes_elsewhere(call, file):
            return
    for child in ast.iter_child_nodes(node):
        yield from _texts(child, file, call)


def _goes_elsewhere(call: str, file: str) -> bool:
    if call == "ValueError":
        return file not in _REACHES_A_PAGE
    if call == "UserError":
        return file in _STARTS_NOTHING
    return _ELSEWHERE.match(call) is not None


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(str(part.value) if isinstance(part, ast.Constant) else PLACE for part in node.values)
