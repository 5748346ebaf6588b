"""Runs the image's entrypoint without a container engine: as near to the container as this machine allows.

`namespaces`: a root of its own in which nothing can be written, with no /tmp, no home and an empty /etc, and a numeric user without
rights; needs unprivileged user namespaces. `folders`: where those are forbidden, the same program with the same environment from a
folder that is read-only. `Container.way` says which it was.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from support.dockerfile import ROOT, stage
from support.heptascope_process import Running

PREFIX = "/opt/heptascope"
USER = 65532
_NAMESPACES = ("unshare", "--user", "--map-root-user", "--mount", "--")
_AS_USER = (
    *("/usr/bin/unshare", "--user", f"--map-user={USER}", f"--map-group={USER}", "--"),
    *("/usr/bin/setpriv", "--no-new-privs", "--"),
)
_ROOT_SCRIPT = r"""
set -eu
root=$1; shift
mount --make-rprivate /
mount -t tmpfs -o size=64k tmpfs "$root"
for path in /bin /lib /lib64 /lib32; do [ ! -L "$path" ] || cp -P "$path" "$root$path"; done
while [ "$1" != -- ]; do
    mkdir -p "$root$1"; mount --rbind "$1" "$root$1"; mount -o remount,bind,ro "$root$1"; shift
done; shift
mkdir "$root/proc" "$root/dev" "$root/sys" "$root/etc" "$root/old"
mount --rbind /proc "$root/proc"; mount --rbind /sys "$root/sys"
for device in null zero urandom; do : >"$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
# No chroot: inside one, the kernel allows no user namespace, which the unprivileged user needs.
cd "$root"
/usr/sbin/pivot_root . old
cd /
umount -l old
rmdir old
mount -o remount,ro /
exec "$@"
"""


def install(prefix: Path) -> None:
    """Do what the build stage of the Dockerfile does, with this interpreter, and leave the result read-only."""
    steps = [arguments for arguments in stage("build").all("RUN") if arguments.startswith("docker/install")]
    assert len(steps) == 2, steps
    environment = {"PYTHON": sys._base_executable}  # type: ignore[attr-defined]  # venv keeps it there
    for step in steps:
        command = step.replace(PREFIX, str(prefix)).split()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=110, env=_inherited() | environment)
        assert 0 == done.returncode, done.stderr
    # The image compiles everything; here what is used, once, since nothing can be written later.
    modules = ", ".join(f"heptascope.commands.{name}" for name in ("serve", "demo", "rules")) + ", uvicorn.protocols.http.h11_impl"
    subprocess.run([prefix / "bin" / "python", "-c", f"import {modules}"], check=True, timeout=110, env=_inherited())
    for folder in (prefix, *(path for path in prefix.rglob("*") if path.is_dir() and not path.is_symlink())):
        folder.chmod(0o555)


def command(prefix: Path, root: Path, words: Sequence[str]) -> list[str]:
    """Return the command that runs `words`, which name files below PREFIX, in the best container that can be had."""
    inside = [word.replace(PREFIX, str(prefix)) for word in words]
    if not namespaces_allowed():
        return inside
    return [*_entered(root, "/usr", sys.base_prefix, str(prefix)), *_AS_USER, *inside]


def environment(prefix: Path) -> dict[str, str]:
    """Return all that the container's environment has: what the Dockerfile sets."""
    return {name: value.replace(PREFIX, str(prefix)) for name, value in stage("plain").environment().items()}


@contextmanager
def container(prefix: Path, folder: Path, *arguments: str, more: dict[str, str] | None = None) -> Iterator[Running]:
    """Run the entrypoint with `arguments` on a free loopback port, its log in `folder`; end it on leaving."""
    (root := folder / "root").mkdir(exist_ok=True)
    log = folder / f"{arguments[0]}.log"
    words = [*stage("plain").exec_form("ENTRYPOINT"), *arguments, "--listen", "127.0.0.1:0"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            command(prefix, root, words), cwd="/", stdout=subprocess.PIPE, stderr=stderr, env=environment(prefix) | (more or {})
        )
        try:
            yield Running(process, log)
        finally:
            process.terminate()
            process.communicate(timeout=20)


@cache
def namespaces_allowed() -> bool:
    """Return whether this machine lets an unprivileged user make a root of his own."""
    with tempfile.TemporaryDirectory() as root:
        try:
            done = subprocess.run([*_entered(Path(root), "/usr"), *_AS_USER, "/usr/bin/true"], capture_output=True, check=False, timeout=20)
        except FileNotFoundError:
            return False
    return done.returncode == 0


def status(process: subprocess.Popen[bytes]) -> dict[str, str]:
    """Return /proc/PID/status of a process as a mapping."""
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _entered(root: Path, *bound: str) -> list[str]:
    seen = [path for path in bound if not any(path != other and Path(path).is_relative_to(other) for other in bound)]
    return [*_NAMESPACES, "sh", "-c", _ROOT_SCRIPT, "sh", str(root), *dict.fromkeys(seen), "--"]


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "HEPTASCOPE_"))}
