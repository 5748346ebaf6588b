"""The image's environment, entrypoint and user, in a root where nothing can be written: it starts, serves and stops."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.container import USER, command, container, environment, install, namespaces_allowed, status
from support.dockerfile import ROOT, script, stage
from support.engine_pages import VLLM_032, capture
from support.engine_server import EngineServer
from support.heptascope_process import Running, until

LICENSES = script("licenses.py")
MEMORY_LIMIT_KIB = 128 * 1024
STOP_SECONDS = 2.0
STOPS = 3
WORST_SCRAPES = 20
BASE_LIBRARIES = {"ld-linux", "libc", "libdl", "libgcc_s", "libm", "libpthread", "librt", "libstdc++", "libz", "linux-vdso"}

POD = {"POD_NAME": "vllm-0-1", "LWS_LEADER_ADDRESS": "vllm-0.vllm.llm", "LWS_WORKER_INDEX": "1", "LWS_GROUP_SIZE": "2"}
PLACE = {
    'heptascope_pod_info{pod_name="vllm-0-1"}',
    'heptascope_pod_group_info{group="vllm-0",group_size="2",manager="leaderworkerset",role="worker",worker_index="1"}',
}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Install the wheel and what is locked, as the Dockerfile does."""
    folder = tmp_path_factory.mktemp("image") / "heptascope"
    install(folder)
    yield folder
    for path in (folder, *(path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())):
        path.chmod(0o755)


def served(running: Running) -> None:
    """Wait until a source has been read and is on the page."""
    assert 1.0 == until(lambda: running.metric('heptascope_source_up{source="host"}'))


def run(prefix: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one command of the image to its end."""
    (root := folder / "root").mkdir(exist_ok=True)
    words = [*stage("plain").exec_form("ENTRYPOINT"), *arguments]
    return subprocess.run(
        command(prefix, root, words), cwd="/", capture_output=True, text=True, check=False, timeout=60, env=environment(prefix)
    )


def test_it_serves_as_it_is_started_in_a_pod(prefix: Path, tmp_path: Path) -> None:
    """With the image's own command it finds nothing, says so, serves its pages, writes nothing, and ends in two seconds."""
    before = sorted(prefix.rglob("*"))
    with container(prefix, tmp_path, *stage("plain").exec_form("CMD")) as running:
        served(running)
        assert {"alive": True} == running.json("/healthz")
        assert "<title>" in running.get("/")
        held = status(running.process)
        if namespaces_allowed():
            assert ("0" * 16, "0" * 16, "1") == (held["CapEff"], held["CapPrm"], held["NoNewPrivs"])
        code, seconds = running.stop()
        assert (0, False) == (code, "Traceback" in running.log())
    took = [seconds]
    while took[-1] >= STOP_SECONDS and len(took) < STOPS:  # another look, where the tests' own machine is busy
        with container(prefix, tmp_path, "serve") as running:
            served(running)
            took.append(running.stop()[1])
    assert took[-1] < STOP_SECONDS
    assert before == sorted(prefix.rglob("*"))


def test_it_judges_an_engine_within_its_memory_limit(prefix: Path, tmp_path: Path) -> None:
    """Beside an engine, and scraped again and again, it stays below 128 MiB; it also shows its place in a group of pods."""
    with EngineServer() as engine:
        engine.page(capture(VLLM_032, "saturated_queue"))
        engines = {"HEPTASCOPE_ENGINE": engine.url, "HEPTASCOPE_POLL_INTERVAL": "100ms"}
        with container(prefix, tmp_path, "serve", more=engines | POD) as running:
            until(lambda: running.metric('heptascope_engine_requests_running{engine="vllm",rank="0"}'))
            until(lambda: any(series.startswith("heptascope_verdict{") for series in running.metrics()))
            assert PLACE <= running.metrics().keys()
            for _ in range(WORST_SCRAPES):
                running.get("/metrics")
            peak = int(status(running.process)["VmHWM"].split()[0])
    assert peak < MEMORY_LIMIT_KIB, f"{peak / 1024:.0f} MiB"


def test_the_demo_plays_in_it(prefix: Path, tmp_path: Path) -> None:
    """The recordings, the catalogue and the runbooks are in the wheel: the demo has findings."""
    with container(prefix, tmp_path, "demo", "--speed", "20") as running:
        until(lambda: any(series.startswith("heptascope_finding{") for series in running.metrics()))
        services = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))["services"]
        _, python, option, code = services["heptascope"]["healthcheck"]["test"]
        probe = code.replace("http://127.0.0.1:17007", running.url)
        assert subprocess.run([prefix / "bin" / python, option, probe], check=False, timeout=20, env={}).returncode == 0
    (runbooks,) = prefix.glob("lib/python3*/site-packages/heptascope/runbooks")
    assert {page.name for page in (ROOT / "alerts" / "runbooks").glob("*.md")} == {page.name for page in runbooks.iterdir()}


def test_what_needs_a_folder_says_so_in_one_line(prefix: Path, tmp_path: Path) -> None:
    """Recording to a folder that cannot be made ends with one line and status 2."""
    done = run(prefix, tmp_path, "serve", "--listen", "127.0.0.1:0", "--record", "/proc/nowhere")
    assert (2, 1) == (done.returncode, done.stderr.count("\n")), done.stderr
    assert done.stderr.startswith("heptascope: /proc/nowhere: cannot be used for a recording")


def test_the_command_line_works_in_it(prefix: Path, tmp_path: Path) -> None:
    """`kubectl exec … heptascope check` and `heptascope rules check` need nothing that the container lacks."""
    assert (0, "") == ((done := run(prefix, tmp_path, "rules", "check")).returncode, done.stderr)
    done = run(prefix, tmp_path, "version")
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("heptascope ")


def test_its_libraries_need_nothing_that_the_base_image_lacks(prefix: Path) -> None:
    """Every compiled module finds its libraries beside it or among the few that the distroless Python image has."""
    modules = [str(path) for path in prefix.rglob("*.so*") if path.is_file()]
    done = subprocess.run(["ldd", *modules], capture_output=True, text=True, check=False, timeout=60)
    needed = [line.split() for line in done.stdout.splitlines() if line.startswith("\t") and "statically" not in line]
    outside = {words[0].rpartition("/")[2].partition(".")[0] for words in needed if str(prefix) not in " ".join(words[1:])}
    assert modules
    assert set() == {name for name in outside if not any(name.startswith(base) for base in BASE_LIBRARIES)}


def test_the_lock_is_whole(prefix: Path) -> None:
    """What a package in it needs is in it, at an allowed version, and each is one that the lock names."""
    installed = LICENSES.installed_in(prefix)
    for name, package in installed.items():
        for requirement in map(Requirement, package.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed = installed.get(canonicalize_name(requirement.name))
                assert needed is not None, f"{name} needs {requirement}"
                assert needed.version in requirement.specifier, f"{name} needs {requirement}"
    assert set(LICENSES.locked(LICENSES.LOCK.read_text(encoding="utf-8"))) == set(installed) - {"heptascope"}


def test_no_installer_and_no_source_is_left(prefix: Path) -> None:
    """The environment holds the program and no pip; the tools of the build are gone."""
    assert (prefix / "bin" / "heptascope").is_file()
    assert [] == [path.name for path in (prefix / "bin").iterdir() if path.name.startswith("pip")]
    assert not prefix.with_name(prefix.name + ".tools").exists()
    assert USER == int(stage("plain").last("USER").partition(":")[0])
