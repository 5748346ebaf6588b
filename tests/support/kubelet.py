"""A kubelet's PodResources API: answers as it sends them, over a real gRPC socket."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import grpc

from heptascope.sources.kubelet import METHOD


def field(number: int, content: bytes) -> bytes:
    """Return a length-delimited protobuf field."""
    return bytes([number << 3 | 2, len(content)]) + content


def pod(name: str, namespace: str, *ids: str) -> bytes:
    """Return one pod of a List answer, with CPU ids (packed numbers) beside its devices, as the kubelet sends them."""
    devices = field(1, b"nvidia.com/gpu") + b"".join(field(2, i.encode()) for i in ids)
    container = field(1, b"server") + field(2, devices) + field(3, b"\x01\x02") + b"\x30\x96\x01"
    return field(1, field(1, name.encode()) + field(2, namespace.encode()) + field(3, container))


@contextmanager
def a_kubelet(folder: Path, answer: bytes) -> Iterator[Path]:
    """Run a gRPC server that gives `answer` at the kubelet's method."""
    method = grpc.unary_unary_rpc_method_handler(lambda *_: answer)
    service, _, name = METHOD.strip("/").partition("/")
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {name: method}),))
    path = folder / "kubelet.sock"
    server.add_insecure_port(f"unix://{path}")
    server.start()
    try:
        yield path
    finally:
        server.stop(None).wait()
