"""Which container has which GPU, as the kubelet tells: the PodResources API over its unix socket, and a source that shows it.

Only the answer's fields that matter are read, from its wire format, so that grpcio is all that this needs (the extra `kubernetes`).
Message and field numbers: k8s.io/kubelet/pkg/apis/podresources/v1/api.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from heptascope.model import Reading, Reason, Sample, labels
from heptascope.sources.base import SourceError

METHOD = "/v1.PodResourcesLister/List"
DEVICE_INFO = "heptascope_kubelet_device_info"
INTERVAL_SECONDS, TIMEOUT_SECONDS = 10.0, 2.0
_PODS, _NAME, _NAMESPACE, _CONTAINERS = 1, 1, 2, 3
_CONTAINER_NAME, _DEVICES, _DEVICE_IDS = 1, 2, 2
_PREFIXES = ("GPU-", "MIG-")
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


class Held(NamedTuple):
    """A device that a container was given: `GPU-…`, `MIG-…`, or `GPU-…::N` where time slicing or MPS shares it."""

    device: str
    pod_namespace: str
    pod_name: str
    container_name: str


class KubeletError(Exception):
    """The kubelet did not answer; the message says why."""


class KubeletSource:
    """Shows who has the GPUs of a whole node; which are ours is the attribution's to tell."""

    name = kind = "kubelet"
    interval, timeout = INTERVAL_SECONDS, 2 * TIMEOUT_SECONDS

    def __init__(self, socket: Path) -> None:
        """Ask at this socket."""
        self._socket = socket

    def read(self, now: float) -> Reading:
        """Read once. Raises SourceError where the kubelet cannot be asked."""
        try:
            held = held_devices(self._socket)
        except KubeletError as exc:
            raise SourceError(Reason.SOURCE_DOWN, str(exc)) from exc
        pairs = {
            labels(
                uuid=one.device.partition("::")[0],
                pod_namespace=one.pod_namespace,
                pod_name=one.pod_name,
                container_name=one.container_name,
            )
            for one in held
        }
        return Reading(self.name, now, [Sample(DEVICE_INFO, each, 1.0) for each in sorted(pairs)])

    def close(self) -> None:
        """Hold nothing between two reads."""


def held_devices(socket: Path) -> list[Held]:
    """Ask for the devices of all pods of the node. Raises KubeletError."""
    try:
        return list(devices_in(_list(socket)))
    except ImportError:
        raise KubeletError("the kubelet cannot be asked without grpcio: pip install 'heptascope[kubernetes]'") from None
    except OSError as exc:
        raise KubeletError(f"the kubelet at {socket} cannot be asked: {exc}") from exc


def devices_in(answer: bytes) -> Iterator[Held]:
    """Yield the GPUs and MIG instances in a List answer; a damaged one gives what could be read."""
    for pod in _messages(answer, _PODS):
        told = dict(_texts(pod))
        for container in _messages(pod, _CONTAINERS):
            name = next((text for number, text in _texts(container) if number == _CONTAINER_NAME), "")
            ids = (text for devices in _messages(container, _DEVICES) for number, text in _texts(devices) if number == _DEVICE_IDS)
            yield from (Held(i, told.get(_NAMESPACE, ""), told.get(_NAME, ""), name) for i in ids if i.startswith(_PREFIXES))


def _list(socket: Path) -> bytes:
    """Ask for all pods. Raises ImportError without grpcio, OSError for anything that goes wrong."""
    import grpc

    with grpc.insecure_channel(f"unix://{socket}") as channel:
        call: Any = channel.unary_unary(METHOD)  # without serialisers: bytes in, bytes out
        try:
            answer: bytes = call(b"", timeout=TIMEOUT_SECONDS)
        except grpc.RpcError as exc:
            raise OSError(f"{exc.code().name}: {exc.details()}") from exc
    return answer


def _messages(data: bytes, number: int) -> Iterator[bytes]:
    return (content for found, content in _fields(data) if found == number)


def _texts(data: bytes) -> Iterator[tuple[int, str]]:
    return ((number, content.decode("utf-8", "replace")) for number, content in _fields(data))


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each length-delimited field of a protobuf message; ends where the message is damaged."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        kind = key & 7
        if kind == _LENGTH:
            length, position = _varint(data, position)
            yield key >> 3, data[position : position + length]
            position += length
        elif kind == _VARINT:
            _, position = _varint(data, position)
        elif kind in (_FIXED64, _FIXED32):
            position += 8 if kind == _FIXED64 else 4
        else:
            return


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            break
    return value, position
