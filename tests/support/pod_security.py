"""The Pod Security Standards as far as a pod's fields go: which level a pod needs, and why not a stricter one.

Controls: kubernetes.io/docs/concepts/security/pod-security-standards (Kubernetes 1.37).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_CAPABILITIES = {
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP",
    "SETUID", "SYS_CHROOT",
}  # fmt: skip
_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"}


def level(pod: dict[str, Any]) -> str:
    """Return the strictest level that admits a pod spec: restricted, baseline or privileged."""
    if list(against_baseline(pod)):
        return "privileged"
    return "baseline" if list(against_restricted(pod)) else "restricted"


def against_baseline(pod: dict[str, Any]) -> Iterator[str]:
    """Yield what level baseline forbids in a pod spec."""
    yield from (key for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key))
    yield from (f"volume {volume['name']}: hostPath" for volume in pod.get("volumes", ()) if "hostPath" in volume)
    for place, context in _contexts(pod):
        if context.get("privileged"):
            yield f"{place}: privileged"
        if context.get("seccompProfile", {}).get("type") == "Unconfined":
            yield f"{place}: seccompProfile Unconfined"
        if context.get("appArmorProfile", {}).get("type") == "Unconfined":
            yield f"{place}: appArmorProfile Unconfined"
        if context.get("procMount", "Default") != "Default" or context.get("sysctls") or context.get("seLinuxOptions"):
            yield f"{place}: procMount, sysctls or seLinuxOptions"
        yield from (f"{place}: capability {name}" for name in set(context.get("capabilities", {}).get("add", ())) - _CAPABILITIES)
    for container in containers(pod):
        yield from (f"{container['name']}: hostPort" for port in container.get("ports", ()) if port.get("hostPort"))


def against_restricted(pod: dict[str, Any]) -> Iterator[str]:
    """Yield what level restricted forbids in a pod spec, beyond baseline."""
    yield from (f"volume {v['name']}: {kind}" for v in pod.get("volumes", ()) for kind in set(v) - {"name"} - _VOLUMES)
    common = pod.get("securityContext", {})
    for container in containers(pod):
        context = {**common, **container.get("securityContext", {})}
        capabilities = context.get("capabilities", {})
        wanted = {
            "allowPrivilegeEscalation": context.get("allowPrivilegeEscalation") is False,
            "runAsNonRoot": context.get("runAsNonRoot") is True,
            "runAsUser": context.get("runAsUser") != 0,
            "seccompProfile": context.get("seccompProfile", {}).get("type") in ("RuntimeDefault", "Localhost"),
            "capabilities": "ALL" in capabilities.get("drop", ()) and set(capabilities.get("add", ())) <= {"NET_BIND_SERVICE"},
        }
        yield from (f"{container['name']}: {key}" for key, held in wanted.items() if not held)


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all containers of a pod spec."""
    return [*pod.get("initContainers", ()), *pod.get("containers", ()), *pod.get("ephemeralContainers", ())]


def _contexts(pod: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "pod", pod.get("securityContext", {})
    for container in containers(pod):
        yield container["name"], container.get("securityContext", {})
