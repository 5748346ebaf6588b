"""What the kubelet says about this pod's devices: the PodResources API over its unix socket. Opt-in: it needs root and a host path.

Only the answer's fields that matter are read, from its wire format, so that grpcio is all that this needs (the extra `kubernetes`).
Message and field numbers: k8s.io/kubelet/pkg/apis/podresources/v1/api.proto.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from heptascope.sources.gpu.attribution import POD, SHARED, Owned, Way

METHOD = "/v1.PodResourcesLister/List"
TIMEOUT_SECONDS = 2.0
_PODS, _NAME, _NAMESPACE, _CONTAINERS = 1, 1, 2, 3
_DEVICES, _DEVICE_IDS = 2, 2
_PREFIXES = ("GPU-", "MIG-")
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


def kubelet(socket: Path | None, environ: Mapping[str, str] = os.environ) -> Way:
    """Return the way of the kubelet; this pod's name is POD_NAME (else HOSTNAME), its namespace POD_NAMESPACE (else any)."""

    def ask() -> Owned | str:
        if socket is None:
            return "gpu.pod_resources is not set"
        pod = environ.get("POD_NAME") or environ.get("HOSTNAME", "")
        try:
            answer = _list(socket)
        except ImportError:
            return "the kubelet cannot be asked without grpcio: pip install 'heptascope[kubernetes]'"
        except OSError as exc:
            return f"the kubelet at {socket} cannot be asked: {exc}"
        ids = devices_of(answer, pod, environ.get("POD_NAMESPACE", ""))
        if not ids:
            return f"the kubelet gives no GPU to the pod {pod}"
        return Owned(ids, SHARED if any("::" in device for device in ids) else POD, "the kubelet")

    return ask


def devices_of(answer: bytes, pod: str, namespace: str) -> frozenset[str]:
    """Return the GPU ids of one pod in a List answer: `GPU-…`, `MIG-…`, and `GPU-…::N` where time slicing or MPS shares it."""
    found: set[str] = set()
    for message in _messages(answer, _PODS):
        fields = dict(_texts(message))
        if fields.get(_NAME) != pod or (namespace and fields.get(_NAMESPACE) != namespace):
            continue
        for container in _messages(message, _CONTAINERS):
            for devices in _messages(container, _DEVICES):
                found |= {text for number, text in _texts(devices) if number == _DEVICE_IDS and text.startswith(_PREFIXES)}
    return frozenset(found)


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
