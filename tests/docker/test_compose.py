"""docker/compose.yaml and what it provisions: valid, whole, and read by the real Prometheus."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.dockerfile import ROOT, stage
from support.heptascope_process import running, until
from support.prometheus import program, promtool, running_prometheus

COMPOSE = ROOT / "docker" / "compose.yaml"
SERVICES: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
GRAFANA = COMPOSE.parents[1] / "dashboards" / "provisioning"


def mounts(service: str) -> dict[str, Path]:
    """Return what a service sees of the repository: path inside to path here."""
    parts = [volume.split(":") for volume in SERVICES[service]["volumes"]]
    return {inside: (COMPOSE.parent / here).resolve() for here, inside, *_ in parts if here.startswith(".")}


def prometheus_config(**replaced: str) -> str:
    """Return Prometheus' configuration with the paths of this machine, and hosts `replaced`."""
    paths = mounts("prometheus")
    text = paths.pop("/etc/prometheus/prometheus.yaml").read_text(encoding="utf-8")
    for inside, here in paths.items():
        text = text.replace(inside, str(here))
    for host, address in replaced.items():
        text = re.sub(rf'"{host}:\d+"', f'"{address}"', text)
    return text


def test_it_fits_the_schema_of_compose() -> None:
    """The schema of the Compose specification, as check-jsonschema brings it, has nothing to say."""
    checker = Path(sys.executable).with_name("check-jsonschema")
    command = [checker, "--builtin-schema", "vendor.compose-spec", COMPOSE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("service", ["prometheus", "alertmanager", "grafana"])
def test_every_mounted_path_is_there_and_read_only(service: str) -> None:
    """What a service mounts exists in the repository, folders hold something, and no service can change it."""
    for inside, here in mounts(service).items():
        assert here.is_file() or any(here.iterdir()), here
        assert [f"{inside}:ro"] == [v.partition(":")[2] for v in SERVICES[service]["volumes"] if f":{inside}:" in v]
    assert mounts(service)


def test_only_this_machine_is_served_and_nothing_can_be_written() -> None:
    """Every port is bound to loopback; every root is read-only, without capabilities and new privileges."""
    for name, service in SERVICES.items():
        assert [] == [port for port in service["ports"] if not port.startswith("127.0.0.1:")], name
        held = (service["read_only"], service["cap_drop"], service["security_opt"])
        assert (True, ["ALL"], ["no-new-privileges:true"]) == held, name


def test_images_of_others_have_a_version() -> None:
    """No image is taken at `latest`."""
    images = {name: service["image"] for name, service in SERVICES.items()}
    assert {"heptascope", "prometheus", "alertmanager", "grafana"} == set(images)
    assert [] == [image for name, image in images.items() if not re.search(r":-v?\d+\.\d+\.\d+\}$|:-heptascope:dev\}$", image)]


def test_the_build_is_that_of_the_dockerfile() -> None:
    """The service is built from the root of the sources, to the plain variant."""
    build = SERVICES["heptascope"]["build"]
    assert ROOT == (COMPOSE.parent / build["context"]).resolve()
    assert (ROOT / build["dockerfile"]).is_file()
    assert "plain" == stage(build["target"]).name


def test_alertmanager_takes_its_configuration() -> None:
    """`amtool check-config` accepts the file that is mounted where the command looks for it."""
    (path,) = mounts("alertmanager").values()
    assert f"--config.file={next(iter(mounts('alertmanager')))}" in SERVICES["alertmanager"]["command"]
    done = subprocess.run([program("amtool"), "check-config", path], capture_output=True, text=True, check=False, timeout=30)
    assert 0 == done.returncode, done.stdout + done.stderr


def test_promtool_takes_the_configuration(tmp_path: Path) -> None:
    """`promtool check config` accepts Prometheus' configuration and finds every rule file behind it."""
    (tmp_path / "prometheus.yaml").write_text(prometheus_config(), encoding="utf-8")
    done = promtool("check", "config", tmp_path / "prometheus.yaml")
    assert 0 == done.returncode, done.stdout + done.stderr
    assert len(list((ROOT / "alerts" / "rules").glob("*.yaml"))) == done.stdout.count("rules found")


def test_prometheus_scrapes_the_demo_with_it(tmp_path: Path) -> None:
    """The command of the service serves what the configuration scrapes, under the job and labels that the rules ask for."""
    scenario = SERVICES["heptascope"]["command"][2].removeprefix("${SCENARIO:-").removesuffix("}")
    with running("demo", "--scenario", scenario, folder=tmp_path) as daemon:
        config = prometheus_config(heptascope=daemon.url.removeprefix("http://"), alertmanager="127.0.0.1:9").replace(": 15s", ": 1s")
        with running_prometheus(tmp_path, config=config) as prometheus:
            target = until(lambda: next((t for t in prometheus.api("/api/v1/targets")["data"]["activeTargets"] if t["health"] == "up"), {}))
            groups = prometheus.api("/api/v1/rules")["data"]["groups"]
    labels = {name: value for name, value in target["labels"].items() if name != "instance"}
    assert {"job": "heptascope", "cluster": "demo", "namespace": "demo", "workload": "vllm", "pod": "vllm-0"} == labels
    assert {path.name for path in (ROOT / "alerts" / "rules").glob("*.yaml")} == {Path(group["file"]).name for group in groups}


def test_grafana_is_provisioned_with_prometheus_and_the_boards() -> None:
    """The data source leads to the service, scraped as often as it says; the provider reads the folder that is mounted."""
    (source,) = yaml.safe_load((GRAFANA / "datasources" / "heptascope.yaml").read_text(encoding="utf-8"))["datasources"]
    interval = yaml.safe_load(prometheus_config())["global"]["scrape_interval"]
    assert ("http://prometheus:9090", True, interval) == (source["url"], source["isDefault"], source["jsonData"]["timeInterval"])
    (provider,) = yaml.safe_load((GRAFANA / "dashboards" / "heptascope.yaml").read_text(encoding="utf-8"))["providers"]
    boards = mounts("grafana")[provider["options"]["path"]]
    assert ROOT / "dashboards" / "json" == boards
    assert list(boards.glob("*.json"))
