"""Whose node a dcgm-exporter's page is of: one of another node is refused, with the reason, and none of this node is."""

from __future__ import annotations

import pytest

from heptascope.model import Reason, labels
from heptascope.sources.base import SourceError
from heptascope.sources.engine.fetch import Fetched
from heptascope.sources.engine.page import Document
from heptascope.sources.gpu import dcgm_exporter
from heptascope.sources.gpu.dcgm_exporter import DcgmExporterSource
from heptascope.sources.gpu.dcgm_exporter_node import Here
from heptascope.sources.gpu.dcgm_exporter_page import ExporterReader
from support.dcgm_pages import Gpu, page
from support.gpu_rows import values

HERE = {"KUBERNETES_SERVICE_HOST": "10.1.0.1", "NODE_NAME": "node-2", "HOST_IP": "10.0.0.2", "POD_NAME": "vllm-0", "POD_NAMESPACE": "ml"}
SERVICE = "http://nvidia-dcgm-exporter.gpu-operator:9400/metrics"
OURS = {"pod": "vllm-0", "namespace": "ml"}


def kept(url: str, text: str, wanted: tuple[str, ...] = (), **changes: str) -> list[str]:
    """Return the UUIDs of the boards of a page of `node-1` that a pod with this environment takes."""
    boards = ExporterReader().read(Document(url, text, "text/plain"))
    return [board.uuid for board in Here(HERE | changes).boards(url, boards, wanted).values()]


@pytest.mark.parametrize("generation", ["1.x", "legacy", "4.9"])
def test_a_page_of_another_node_is_refused(generation: str) -> None:
    """The page says `node-1`, this is `node-2`: nothing of it is shown, and the reason names both and what to do."""
    with pytest.raises(SourceError) as refused:
        kept(SERVICE, page(generation, Gpu(0), Gpu(1)))
    assert Reason.AMBIGUOUS == refused.value.reason
    assert f"{SERVICE}: the page is of node-1 and this node is node-2; read the exporter at the node's own address" in str(refused.value)
    assert "internalTrafficPolicy: Local" in str(refused.value)


@pytest.mark.parametrize("node", ["node-1", "NODE-1", "node-1.example.internal"])
def test_a_page_of_this_node_is_taken(node: str) -> None:
    """The name is the node's, whatever its capitals and with or without its domain."""
    assert ["GPU-0"] == kept(SERVICE, page("legacy"), NODE_NAME=node)


def test_another_domain_is_another_node() -> None:
    """Of two whole names both domains count."""
    text = page("legacy").replace('"node-1"', '"node-1.b.example"')
    with pytest.raises(SourceError):
        kept(SERVICE, text, NODE_NAME="node-1.a.example")


def test_without_names_every_page_is_taken() -> None:
    """Outside Kubernetes no node is known, and an exporter can be told to say no name."""
    outside = {name: text for name, text in HERE.items() if name != "KUBERNETES_SERVICE_HOST"}  # build servers too set NODE_NAME
    boards = ExporterReader().read(Document(SERVICE, page("legacy"), "text/plain"))
    assert boards == Here(outside).boards(SERVICE, boards)
    assert ["GPU-0"] == kept(SERVICE, page("legacy"), NODE_NAME="")
    assert ["GPU-0"] == kept(SERVICE, page("legacy").replace('"node-1"', '""'))


def test_this_pod_on_the_page_proves_the_node() -> None:
    """Older exporters say the name of their own pod; where the page has this pod's labels, it is of its node, other boards included."""
    assert ["GPU-0", "GPU-1"] == kept(SERVICE, page("legacy", Gpu(0, **OURS), Gpu(1)))
    with pytest.raises(SourceError):
        kept(SERVICE, page("legacy", Gpu(0, pod="vllm-0", namespace="else")))


@pytest.mark.parametrize(
    "url", ["http://10.0.0.2:9400/metrics", "http://localhost:9400/metrics", "http://127.0.0.1/", "http://[::1]:9400/"]
)
def test_this_node_s_address_proves_the_node(url: str) -> None:
    """At the node's own address its own exporter answers, whatever it calls itself."""
    assert ["GPU-0"] == kept(url, page("1.x"))


def test_ipv6_is_compared_as_an_address() -> None:
    """The node's address may be spelt in another way than in the URL."""
    assert ["GPU-0"] == kept("http://[fd00:0::2]:9400/metrics", page("1.x"), HOST_IP="fd00::2")


@pytest.mark.parametrize("url", ["http://10.0.0.3:9400/metrics", "http://10.0.0.2:30940/metrics"])
def test_another_address_or_a_node_port_proves_nothing(url: str) -> None:
    """At a port of a Service the node's address too may answer from another node."""
    with pytest.raises(SourceError):
        kept(url, page("legacy"))


def test_of_a_page_of_many_nodes_this_one_is_taken() -> None:
    """A page that several exporters were joined into gives this node's boards alone, at its own address too."""
    text = page("legacy", Gpu(0), Gpu(1)) + page("legacy", Gpu(2)).replace('"node-1"', '"node-2"')
    assert [["GPU-2"]] * 2 == [kept(url, text) for url in (SERVICE, "http://10.0.0.2:9400/metrics")]


def test_a_gpu_that_was_asked_for_by_uuid_is_taken() -> None:
    """A UUID is one card in the world; an index is one on each node."""
    assert ["GPU-1"] == kept(SERVICE, page("legacy", Gpu(0), Gpu(1)), wanted=("GPU-1",))
    with pytest.raises(SourceError):
        kept(SERVICE, page("legacy", Gpu(0), Gpu(1)), wanted=("1",))


class Pages:
    """A fetcher that gives the page of each URL."""

    def __init__(self, pages: dict[str, str]) -> None:
        """Serve `pages`, by URL."""
        self._pages = pages

    def get(self, url: str) -> Fetched:
        """Return the page of a URL."""
        return Fetched(200, "text/plain", self._pages[url])


def test_the_source_is_down_while_another_node_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a Service answers from another node there is no reading; beside a page of this node the refused one costs itself alone."""
    pages = {SERVICE: page("legacy"), "http://10.0.0.2:9400/metrics": page("legacy", Gpu(7)).replace('"node-1"', '"node-2"')}
    monkeypatch.setattr(dcgm_exporter, "Fetcher", lambda *_, **__: Pages(pages))
    with pytest.raises(SourceError, match="the page is of node-1 and this node is node-2"):
        DcgmExporterSource([SERVICE], environ=HERE).read(5.0)
    reading = DcgmExporterSource(list(pages), environ=HERE).read(5.0)
    assert {labels(gpu="7", uuid="GPU-7")} == set(values(reading, "power_watts"))
    assert [Reason.AMBIGUOUS] == [gap.reason for gap in reading.missing if SERVICE in gap.detail]
