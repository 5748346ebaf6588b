"""Opens a trace file of any kind, by what it holds and not by its name."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from heptascope.errors import UserError
from heptascope.sources.trace import kineto, ncu, nsys
from heptascope.sources.trace.bytesource import ByteSource
from heptascope.sources.trace.events import Trace
from heptascope.sources.trace.ncu import KernelTable

_LOOK = 64 << 10
_SQLITE = b"SQLite format 3\0"
_NCU_REPORT = b"NVR\0"
_EXPORT_TIMEOUT = 600.0  # seconds; large reports take minutes
FORMATS = "a PyTorch profiler trace (JSON, plain or gzip), an Nsight Systems SQLite export, or an Nsight Compute CSV table"


def load(path: Path) -> Trace | KernelTable:
    """Read one file. Raises UserError, naming the file, if it cannot be used."""
    where = str(path)
    try:
        with path.open("rb") as file:
            source = ByteSource(file)
            head = source.read(_LOOK)
            if not head:
                raise UserError(source.problem or "the file is empty", where=where, hint=f"give {FORMATS}")
            if head.startswith(_SQLITE):
                return nsys.read(path)
            file.seek(0)
            text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
            if text[:1] in (b"{", b"["):
                return kineto.read(file, where)
            if ncu.looks_like(text):
                return ncu.read(file, where)
    except OSError as error:
        raise UserError(error.strerror or str(error), where=where, hint="give a file that can be read") from error
    return _other(path, head)


def _other(path: Path, head: bytes) -> Trace:
    """Let nsys itself say whether a binary file is one of its reports."""
    where = str(path)
    if head.startswith(_NCU_REPORT):
        raise UserError("an Nsight Compute report", where=where, hint="turn it into a table: ncu --import FILE --csv --page raw > FILE.csv")
    is_report = path.suffix in (".nsys-rep", ".qdrep")
    exporter = shutil.which("nsys")
    if exporter is None or (b"\0" not in head and not is_report):
        hint = "export it where nsys is installed: nsys export --type sqlite FILE" if is_report else f"give {FORMATS}"
        raise UserError(
            "an Nsight Systems report, and nsys is not on the PATH" if is_report else "not a known kind of trace", where=where, hint=hint
        )
    with tempfile.TemporaryDirectory(prefix="heptascope-") as folder:
        exported = Path(folder) / "export.sqlite"
        _export([exporter, "export", "--type", "sqlite", "--output", str(exported), "--force-overwrite", "true", where], where)
        if not exported.exists():
            raise UserError("not a known kind of trace", where=where, hint=f"give {FORMATS}")
        trace = nsys.read(exported)
    trace.path = where
    return trace


def _export(command: Sequence[str], where: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_EXPORT_TIMEOUT, check=False)  # noqa: S603  # nsys, with a file name
    except subprocess.TimeoutExpired as error:
        raise UserError(f"nsys export took more than {_EXPORT_TIMEOUT:.0f} s", where=where, hint="export it by hand") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UserError(f"nsys cannot export it ({said[-1] if said else f'status {done.returncode}'})", where=where, hint=f"give {FORMATS}")
