"""Writes what is made from the chart: its schema and README table, the rules and dashboards it packs, patches and examples.

`make reference` runs it; a test fails while a file is not current.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from heptascope.rules.load import load
from heptascope.surfaces.alerts.render import render
from heptascope.surfaces.alerts.settings import RenderSettings
from support.helm_render import included
from support.helm_schema import text as schema_text
from support.helm_values import CHART, values

ROOT = CHART.parents[1]
SELECTOR = "heptascope.github.io/sidecar=enabled"
MODES = {"none": "none", "runtime-env": "runtimeEnv", "cdi": "cdi", "dra": "dra"}
"""Folder below helm/kustomize and file below helm/patches, and the gpu.mode it is for."""
_PACKED = {"alerts/rules/*.yaml": "rules", "dashboards/json/*.json": "dashboards"}
_COUNTED = "rules-sidecar"
_REGION = re.compile(
    r"(?m)^(?P<indent> *)# begin: heptascope\.sidecar (?P<values>\{.*\})\n(?:.*\n)*?(?P=indent)# end: heptascope\.sidecar$"
)
_HEAD = "# Made from the chart's template by `make reference`; change that.\n"


def files() -> dict[Path, str]:
    """Return every file that is made from the chart, and what it has to hold."""
    with tempfile.TemporaryDirectory() as folder:
        made = {CHART / "values.schema.json": schema_text(), CHART / "README.md": _readme()}
        return made | packed() | _patches(Path(folder)) | _examples(Path(folder))


def packed() -> dict[Path, str]:
    """Return the rules and dashboards inside the chart, which are copies: Helm packs nothing from outside its folder."""
    copies = {
        CHART / "files" / folder / source.name: source.read_text(encoding="utf-8")
        for pattern, folder in _PACKED.items()
        for source in sorted(ROOT.glob(pattern))
    }
    return copies | _counted()


def _counted() -> dict[Path, str]:
    """Return the rule files that differ where the sidecars judge."""
    plain, counted = (render(load(), RenderSettings(judge=judge)) for judge in ("prometheus", "sidecar"))
    differ = [path for path, text in counted.items() if path.parent.name == "rules" and plain[path] != text]
    return {CHART / "files" / _COUNTED / path.name: counted[path] for path in differ}


def surplus() -> list[Path]:
    """Return packed files whose source is gone."""
    current = packed()
    return [path for folder in (*_PACKED.values(), _COUNTED) for path in (CHART / "files" / folder).glob("*.*") if path not in current]


def pod_template(chart_values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return what the template adds to the pod template of a server, nothing else."""
    template = included(chart_values, folder)["spec"]["template"]
    del template["metadata"]["labels"]["app"], template["spec"]["containers"]
    added: dict[str, Any] = template
    return added


def _patches(folder: Path) -> dict[Path, str]:
    found = {}
    for name, mode in MODES.items():
        patch = {"spec": {"template": pod_template({"gpu": {"mode": mode}}, folder)}}
        use = f"# kubectl patch deployment NAME --patch-file helm/patches/{name}.yaml\n"
        found[ROOT / "helm" / "patches" / f"{name}.yaml"] = _HEAD + use + _yaml(patch)
        named = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "any"}} | patch
        component = ROOT / "helm" / "kustomize" / name
        found[component / "sidecar.yaml"] = _HEAD + _yaml(named)
        found[component / "kustomization.yaml"] = (
            _HEAD + f"# It changes Deployments and StatefulSets that have the label {SELECTOR}.\n" + _yaml(COMPONENT)
        )
    return found


COMPONENT = {
    "apiVersion": "kustomize.config.k8s.io/v1alpha1",
    "kind": "Component",
    "patches": [{"path": "sidecar.yaml", "target": {"kind": "Deployment|StatefulSet", "labelSelector": SELECTOR}}],
}


def _examples(folder: Path) -> dict[Path, str]:
    """Return the examples with the sidecar that their `begin` line asks for."""

    def sidecar(match: re.Match[str]) -> str:
        wanted = json.loads(match["values"])
        made = _yaml(pod_template(wanted, folder)["spec"]["initContainers"])
        lines = "".join(f"{match['indent']}{line}\n" for line in made.splitlines())
        return f"{match['indent']}# begin: heptascope.sidecar {match['values']}\n{lines}{match['indent']}# end: heptascope.sidecar"

    paths = sorted((ROOT / "helm" / "examples").glob("*/*.yaml"))
    return {path: _REGION.sub(sidecar, text) for path in paths if _REGION.search(text := path.read_text(encoding="utf-8"))}


def _readme() -> str:
    begin, end = "<!-- generated: values -->\n", "<!-- end: values -->"
    head, _, rest = (CHART / "README.md").read_text(encoding="utf-8").partition(begin)
    rows = [f"| `{'.'.join(v.path)}` | {v.type} | `{json.dumps(v.default)}` | {v.description} |\n" for v in values()]
    table = "| value | type | default | what |\n| --- | --- | --- | --- |\n" + "".join(rows)
    return f"{head}{begin}{table}{end}{rest.partition(end)[2]}"


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key, as people write them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _yaml(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=130)


def main() -> None:
    """Write what is not current, and remove what has lost its source."""
    for path in surplus():
        path.unlink()
    (CHART / "values.schema.json").write_text(schema_text(), encoding="utf-8")  # what is rendered next is held to it
    made = files()
    stale = [path for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path], encoding="utf-8")
    print(f"{len(made)} files made from the chart, {len(stale)} of them written")


if __name__ == "__main__":
    main()
