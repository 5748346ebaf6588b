"""What a pod tells of itself in its environment: its name, and its place among the pods that serve one model together.

The downward API, and the controllers that make groups of pods, set the variables (docs/security.md and docs/engines.md name them).
They only inform: nothing is judged by them, and no other series carries them, because Prometheus labels targets itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from heptascope.model import Missing, Reading, Reason, Sample, labels

SOURCE = "pod"
IN_KUBERNETES = "KUBERNETES_SERVICE_HOST"
POD_INFO = "heptascope_pod_info"
GROUP_INFO = "heptascope_pod_group_info"
LEADER, WORKER = "leader", "worker"
_POD_LABELS = {"pod_name": "POD_NAME", "pod_namespace": "POD_NAMESPACE", "node_name": "NODE_NAME"}
_RAY_HEAD = ("headgroup", "head")  # KubeRay's name of the head's group, and the value of its label ray.io/node-type

Environment = Mapping[str, str]


class Group(NamedTuple):
    """The place of a pod in a group of pods; "" for what is not told."""

    manager: str
    group: str
    role: str = ""
    worker_index: str = ""
    group_size: str = ""


class _Manager(NamedTuple):
    """How one controller tells the place: the group's name, and the variables that hold index and size."""

    name: str
    group: Callable[[Environment], str]
    index_variable: str
    size_variable: str = ""


def _host(variable: str) -> Callable[[Environment], str]:
    """Return what reads the first part of the host name in `variable`: the leader's pod, whose name is that of the group."""
    return lambda environ: environ.get(variable, "").partition(".")[0]


def _jobset(environ: Environment) -> str:
    parts = (environ.get(variable, "") for variable in ("JOBSET_NAME", "REPLICATED_JOB_NAME", "JOB_INDEX"))
    return "-".join(part for part in parts if part) if environ.get("JOBSET_NAME") else ""


def _job(environ: Environment) -> str:
    """Return the name of an indexed Job: that of its pods is `<job>-<index>-<five letters>`."""
    return environ.get("JOB_NAME") or (environ.get("POD_NAME", "").rsplit("-", 2)[0])


def _stateful_set(environ: Environment) -> str:
    return environ.get("POD_NAME", "").removesuffix(f"-{environ.get('POD_INDEX', '')}")


MANAGERS = (
    _Manager("leaderworkerset", _host("LWS_LEADER_ADDRESS"), "LWS_WORKER_INDEX", "LWS_GROUP_SIZE"),
    _Manager("ray", lambda environ: environ.get("RAY_CLUSTER_NAME", ""), "RAY_WORKER_INDEX", "RAY_GROUP_SIZE"),
    _Manager("jobset", _jobset, "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"),
    _Manager("job", _job, "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS"),
    _Manager("torch", _host("MASTER_ADDR"), "NODE_RANK", "NNODES"),
    _Manager("statefulset", _stateful_set, "POD_INDEX"),
)
"""The most telling first: a LeaderWorkerSet is made of StatefulSets, and Ray or PyTorch may run inside any of them."""


def group_of(environ: Environment) -> Group | None:
    """Return the place that the environment tells, None if it tells of no group. Raises ValueError for an index that is no number."""
    for manager in MANAGERS:
        group, index = manager.group(environ), environ.get(manager.index_variable, "")
        if group and (index or manager.name == "ray"):
            size = environ.get(manager.size_variable, "")
            for variable, value in ((manager.index_variable, index), (manager.size_variable, size)):
                if value and not value.isdecimal():
                    raise ValueError(f"{variable} is {value!r}, which is no number")
            return Group(manager.name, group, _role(manager.name, index, environ), index, size)
    return None


def _role(manager: str, index: str, environ: Environment) -> str:
    """Return who leads: worker 0, and Ray's head; a StatefulSet's pods are peers."""
    if manager == "statefulset":
        return ""
    if manager == "ray":
        kind = environ.get("RAY_NODE_TYPE") or environ.get("RAY_NODE_TYPE_NAME", "")
        return (LEADER if kind in _RAY_HEAD else WORKER) if kind else ""
    return LEADER if int(index) == 0 else WORKER


def read(environ: Environment, now: float) -> Reading:
    """Return the reading of an environment, which does not change while the process runs."""
    samples, missing = list(_pod(environ)), []
    if not samples and IN_KUBERNETES in environ:
        detail = f"set {', '.join(_POD_LABELS.values())} from the downward API (the chart does)"
        missing.append(Missing(POD_INFO, Reason.NOT_CONFIGURED, detail))
    try:
        group = group_of(environ)
    except ValueError as exc:
        missing.append(Missing(GROUP_INFO, Reason.INVALID, str(exc)))
    else:
        samples += [Sample(GROUP_INFO, labels(**group._asdict()), 1.0)] if group is not None else []
    return Reading(SOURCE, now, samples, missing=missing)


def _pod(environ: Environment) -> Iterator[Sample]:
    pairs = labels(**{label: environ.get(variable, "") for label, variable in _POD_LABELS.items()})
    if pairs:
        yield Sample(POD_INFO, pairs, 1.0)


def advice(environ: Environment) -> str:
    """Return why no engine may answer here: "" unless this pod only works for a leader."""
    try:
        group = group_of(environ)
    except ValueError:
        return ""
    if group is None or group.role != WORKER:
        return ""
    return f"this pod is a worker of {group.group}: where its engine serves metrics on the leader alone, none is here to be found"
