"""What the kubelet says about this pod's devices. Opt-in: its socket needs root and a host path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from heptascope.sources.gpu.attribution import POD, SHARED, Owned, Way
from heptascope.sources.kubelet import Held, KubeletError, held_devices


def kubelet(socket: Path | None, environ: Mapping[str, str] = os.environ) -> Way:
    """Return the way of the kubelet; this pod's name is POD_NAME (else HOSTNAME), its namespace POD_NAMESPACE (else any)."""

    def ask() -> Owned | str:
        if socket is None:
            return "gpu.pod_resources is not set"
        pod, namespace = environ.get("POD_NAME") or environ.get("HOSTNAME", ""), environ.get("POD_NAMESPACE", "")
        try:
            ids = frozenset(held.device for held in held_devices(socket) if _is(held, pod, namespace))
        except KubeletError as exc:
            return str(exc)
        if not ids:
            return f"the kubelet gives no GPU to the pod {pod}"
        return Owned(ids, SHARED if any("::" in device for device in ids) else POD, "the kubelet")

    return ask


def _is(held: Held, pod: str, namespace: str) -> bool:
    return held.pod_name == pod and (not namespace or held.pod_namespace == namespace)
