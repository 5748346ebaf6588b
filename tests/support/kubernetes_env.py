"""What the kubelet makes of a container's environment, for a pod named vllm-0 on a node with a given address."""

from __future__ import annotations

import re
from typing import Any

POD = "vllm-0"
_FIELDS = {"metadata.name": POD, "metadata.namespace": "llm", "spec.nodeName": "node-7"}


def environment(container: dict[str, Any], host: str = "10.0.0.7") -> dict[str, str]:
    """Return the variables: downward fields filled in, `$(NAME)` replaced where NAME stands before, secrets as their key's name."""
    fields = {**_FIELDS, "status.hostIP": host}
    found = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    for variable in container.get("env", ()):
        source = variable.get("valueFrom", {})
        text = variable.get("value", "")
        if "fieldRef" in source:
            path = source["fieldRef"]["fieldPath"]
            text = "" if path.startswith("metadata.labels[") else fields[path]  # a label that the pod lacks is empty
        elif "secretKeyRef" in source:
            text = f"the {source['secretKeyRef']['key']} of {source['secretKeyRef']['name']}"
        found[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda match: found.get(match[1], match[0]), text)
    return found
