"""Tells a dcgm-exporter's page of this node from one of another: a Service may answer from any node, and one node's GPUs are not another's.

The page says whose it is in its label Hostname: the node's name since 3.x, if the exporter has NODE_NAME (NVIDIA's chart and operator set
it), else the name of its own pod or machine. So another name is no proof of another node where something else shows that it is this one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from heptascope.model import Reason
from heptascope.sources.base import SourceError
from heptascope.sources.gpu.dcgm_exporter_page import Board
from heptascope.sources.pod import IN_KUBERNETES

_NODE_PORTS = range(30000, 32768)
"""Kubernetes' default range (service-node-port-range): a node answers there for Services, from any node."""


class Here:
    """What the downward API tells in the environment of this pod and its node."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Take NODE_NAME (without it, or outside Kubernetes, every page is taken), HOST_IP, POD_NAME (else HOSTNAME), POD_NAMESPACE."""
        self.node = environ.get("NODE_NAME", "") if IN_KUBERNETES in environ else ""
        self.pod = environ.get("POD_NAME") or environ.get("HOSTNAME", "")
        self._namespace, self._address = environ.get("POD_NAMESPACE", ""), _address(environ.get("HOST_IP", ""))

    def parts(self, board: Board) -> set[str]:
        """Return what of a board the page says is this pod's: instances, or "" for the board."""
        return {part for ns, name, part in board.pods if name == self.pod and (not self._namespace or ns in ("", self._namespace))}

    def boards(self, url: str, boards: Mapping[str, Board], wanted: Collection[str] = ()) -> dict[str, Board]:
        """Return the boards of a page that are this node's, and those `wanted` by UUID. Raises SourceError if there are none."""
        if not self.node:
            return dict(boards)
        names = {board.host for board in boards.values()}
        ours = {board.host for board in boards.values() if self.parts(board)}  # a pod is on one node
        if len(names) == 1 and self._is_local(url):
            ours |= names
        kept = {key: b for key, b in boards.items() if not b.host or b.host in ours or self._is_called(b.host) or b.uuid in wanted}
        if not kept:
            raise SourceError(
                Reason.AMBIGUOUS,
                f"{url}: the page is of {', '.join(sorted(names))} and this node is {self.node}; read the exporter at the node's own "
                "address, or give its Service internalTrafficPolicy: Local and the exporter NODE_NAME",
            )
        return kept

    def _is_called(self, name: str) -> bool:
        """Return whether a name is the node's, with or without its domain."""
        name, node = name.lower(), self.node.lower()
        return name == node or name == node.partition(".")[0] or name.partition(".")[0] == node

    def _is_local(self, url: str) -> bool:
        """Return whether a URL leads to this node whoever answers: its own address and no port of a Service."""
        parts = urlsplit(url)
        address = _address(parts.hostname or "")
        if parts.hostname == "localhost" or address.startswith("127.") or address == "::1":
            return True
        return bool(address) and address == self._address and parts.port not in _NODE_PORTS


def _address(text: str) -> str:
    """Return an IP address in its usual spelling; "" for what is none."""
    try:
        return str(ip_address(text.strip("[]")))
    except ValueError:
        return ""
