"""What a pod's environment tells: its name, and its place in a group of pods."""

from __future__ import annotations

import pytest

from heptascope.model import Missing, Reason, labels
from heptascope.signals.schema import SCHEMA
from heptascope.sources.pod import GROUP_INFO, POD_INFO, Group, advice, group_of, read

LWS = {"LWS_LEADER_ADDRESS": "vllm-1.vllm.serving", "LWS_GROUP_SIZE": "4", "LWS_WORKER_INDEX": "2"}
DOWNWARD = {"POD_NAME": "vllm-0", "POD_NAMESPACE": "serving", "NODE_NAME": "node-a", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
RAY = {"RAY_CLUSTER_NAME": "llm"}


def values(environ: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return the labels of each series of an environment."""
    return {sample.name: dict(sample.labels) for sample in read(environ, 1.0).samples}


def test_the_downward_api_is_shown() -> None:
    """Pod, namespace and node stand in labels of their own; what is not set is left out."""
    assert {POD_INFO: {"pod_name": "vllm-0", "pod_namespace": "serving", "node_name": "node-a"}} == values(DOWNWARD)
    assert {POD_INFO: {"node_name": "node-a"}} == values({"NODE_NAME": "node-a", "POD_NAME": ""})


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (LWS, Group("leaderworkerset", "vllm-1", "worker", "2", "4")),
        (LWS | {"LWS_WORKER_INDEX": "0"}, Group("leaderworkerset", "vllm-1", "leader", "0", "4")),
        (LWS | RAY | {"POD_NAME": "vllm-1-2", "POD_INDEX": "2"}, Group("leaderworkerset", "vllm-1", "worker", "2", "4")),
        (RAY | {"RAY_NODE_TYPE_NAME": "headgroup"}, Group("ray", "llm", "leader")),
        (RAY | {"RAY_NODE_TYPE": "worker", "RAY_WORKER_INDEX": "3"}, Group("ray", "llm", "worker", "3")),
        (RAY, Group("ray", "llm")),
        (
            {
                "JOBSET_NAME": "serve",
                "REPLICATED_JOB_NAME": "workers",
                "JOB_INDEX": "1",
                "JOB_COMPLETION_INDEX": "0",
                "JOB_COMPLETIONS": "2",
            },
            Group("jobset", "serve-workers-1", "leader", "0", "2"),
        ),
        ({"JOB_COMPLETION_INDEX": "3", "POD_NAME": "batch-x-3-abcde"}, Group("job", "batch-x", "worker", "3")),
        ({"JOB_COMPLETION_INDEX": "3", "JOB_NAME": "batch"}, Group("job", "batch", "worker", "3")),
        ({"MASTER_ADDR": "sglang-0.sglang", "NODE_RANK": "1", "NNODES": "2"}, Group("torch", "sglang-0", "worker", "1", "2")),
        ({"POD_NAME": "vllm-11", "POD_INDEX": "11"}, Group("statefulset", "vllm", "", "11")),
        (DOWNWARD, None),
        ({"LWS_LEADER_ADDRESS": "vllm-1.vllm.serving"}, None),
        ({}, None),
    ],
    ids=lambda value: "-".join(value)[:60] if isinstance(value, dict) else "",
)
def test_each_manager_tells_the_place_its_own_way(environ: dict[str, str], expected: Group | None) -> None:
    """Group, index, size and role come from what the controller, or the downward API, puts into the environment."""
    assert expected == group_of(environ)
    shown = values(environ).get(GROUP_INFO)
    assert (dict(labels(**expected._asdict())) if expected else None) == shown


def test_an_index_that_is_no_number_is_invalid() -> None:
    """A variable with something else in it is named; the pod's own name is shown all the same."""
    reading = read(LWS | DOWNWARD | {"LWS_WORKER_INDEX": "two"}, 1.0)
    assert [Missing(GROUP_INFO, Reason.INVALID, "LWS_WORKER_INDEX is 'two', which is no number")] == reading.missing
    assert [POD_INFO] == [sample.name for sample in reading.samples]


def test_a_pod_without_the_downward_api_is_told_what_to_set() -> None:
    """In Kubernetes the name is missing with a remedy; elsewhere nothing is missed."""
    (missing,) = read({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, 1.0).missing
    assert (POD_INFO, Reason.NOT_CONFIGURED) == (missing.signal, missing.reason)
    assert "POD_NAME, POD_NAMESPACE, NODE_NAME" in missing.detail
    assert [] == read({}, 1.0).missing


def test_a_worker_knows_that_its_leader_may_serve_the_page() -> None:
    """Only a worker has a reason for an absent engine page."""
    assert "worker of vllm-1" in advice(LWS)
    assert ["", "", "", ""] == [
        advice(environ)
        for environ in (LWS | {"LWS_WORKER_INDEX": "0"}, LWS | {"LWS_WORKER_INDEX": "x"}, DOWNWARD, {"POD_NAME": "a-1", "POD_INDEX": "1"})
    ]


def test_the_series_are_those_of_the_signal_table() -> None:
    """The table has both, with the labels that are set, and none that Prometheus gives a target."""
    rows = {name: SCHEMA[name] for name, row in SCHEMA.items() if "pod" in row.suppliers}
    assert {POD_INFO, GROUP_INFO} == set(rows)
    assert Group._fields == rows[GROUP_INFO].labels
    assert set(values(DOWNWARD)[POD_INFO]) == set(rows[POD_INFO].labels)
    assert set() == {"pod", "namespace", "node", "container", "job", "instance"} & {label for row in rows.values() for label in row.labels}
