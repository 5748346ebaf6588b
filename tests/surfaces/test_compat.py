"""The page under dcgm-exporter's names: what our own reader of such pages makes of it is what the snapshot holds."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from heptascope.config import WebSettings
from heptascope.model import Labels, labels
from heptascope.signals.schema import SCHEMA
from heptascope.signals.snapshot import Snapshot
from heptascope.sources.engine.page import Document
from heptascope.sources.gpu.dcgm_exporter_page import ExporterReader
from heptascope.sources.gpu.dcgm_exporter_table import MEANINGS
from heptascope.surfaces.compat import TWINS, Compat
from heptascope.surfaces.exposition import Exposition, negotiate
from heptascope.surfaces.web.app import create_app
from support.web_client import Client
from support.web_state import MemoryState

REPOSITORY = Path(__file__).parents[2]
GPU = labels(gpu="0", uuid="GPU-0")
Values = dict[str, tuple[tuple[Labels, float], ...]]


def values() -> Values:
    """Return the values of one busy card that is cut into instances."""
    part = labels(gpu="0", uuid="GPU-0", instance="1")
    plain = {
        "power_watts": 690.5, "sm_clock_hertz": 1.455e9, "memory_clock_hertz": 3.201e9, "utilization_ratio": 0.99,
        "temperature_celsius": 53.0, "energy_joules_total": 9663.2, "memory_used_bytes": 8718 * 2.0**20,
        "memory_reserved_bytes": 615 * 2.0**20,
        "memory_total_bytes": 143771 * 2.0**20, "dram_active_ratio": 0.16, "pcie_receive_bytes_total": 1000.0,
    }  # fmt: skip
    found: Values = {f"heptascope_gpu_{name}": ((GPU, value),) for name, value in plain.items()}
    info = labels(gpu="0", uuid="GPU-0", model='NVIDIA "H200"', driver="580.1", pci_bus_id="0000:4b:00.0")
    found["heptascope_gpu_info"] = ((info, 1.0),)
    found["heptascope_gpu_instance_info"] = ((labels(**dict(part), profile="4g.71gb", slices="4"), 1.0),)
    found["heptascope_gpu_instance_dram_active_ratio"] = ((part, 0.5),)
    found["heptascope_gpu_xid_errors_total"] = tuple((labels(**dict(GPU), xid=code), 0.0) for code in ("31", "79"))
    found["heptascope_gpu_ecc_errors_total"] = tuple(
        (labels(**dict(GPU), kind=k), n) for k, n in (("corrected", 3.0), ("uncorrected", 0.0))
    )
    return found


def snapshot(version: int = 1, **changes: float) -> Snapshot:
    """Return a snapshot a second after that of the version before; `changes` are values of the card by short name."""
    extra = {f"heptascope_gpu_{name}": ((GPU, value),) for name, value in changes.items()}
    return Snapshot(1000.0 + version, version, {**values(), **extra})


def samples(text: str, name: str) -> list[tuple[dict[str, str], float]]:
    """Return the samples of one family."""
    return [(s.labels, s.value) for family in text_string_to_metric_families(text) for s in family.samples if s.name == name]


def test_our_own_reader_takes_the_page_back() -> None:
    """Read as a dcgm-exporter page, it gives the values in the units of rows that the snapshot was made from."""
    board = ExporterReader().read(Document("x", Compat({}).text(snapshot(), openmetrics=False)))["GPU-0"]
    expected = {
        "power_w": 690.5, "sm_mhz": 1455.0, "util_gpu": 99.0, "energy_mj": 9663200.0, "mem_used": 8718 * 2.0**20, "dram_util": 16.0,
        "mem_free": (143771 - 8718 - 615) * 2.0**20, "xid_last": 0.0, "ecc_corrected": 3.0,
    }  # fmt: skip
    found = board.take()
    assert expected == pytest.approx({key: found[key] for key in expected})
    assert 50.0 == board.instances["1"].take()["dram_util"]
    assert "4g.71gb" == board.profiles["1"]


def test_labels_are_theirs() -> None:
    """The spellings of the 4.x releases, values escaped; no pod, no device: those are not ours to say."""
    text = Compat({"NODE_NAME": "node-1"}).text(snapshot(), openmetrics=False)
    ((pairs, value),) = samples(text, "DCGM_FI_DEV_POWER_USAGE")
    assert 690.5 == value
    assert {
        "gpu": "0", "UUID": "GPU-0", "pci_bus_id": "00000000:4B:00.0", "modelName": 'NVIDIA "H200"', "Hostname": "node-1",
        "DCGM_FI_DRIVER_VERSION": "580.1",
    } == pairs  # fmt: skip
    assert [{"GPU_I_ID": "1", "GPU_I_PROFILE": "4g.71gb"}] == [
        {k: v for k, v in found.items() if k.startswith("GPU_I")} for found, _ in samples(text, "DCGM_FI_PROF_DRAM_ACTIVE")[1:]
    ]


def test_byte_counters_are_rates_there() -> None:
    """Their BYTES are gauges a second: the growth between two snapshots; a restart has none, another look at one snapshot the same."""
    compat = Compat({})
    name = "DCGM_FI_PROF_PCIE_RX_BYTES"
    assert [] == samples(compat.text(snapshot(1), openmetrics=False), name)
    for _ in range(2):
        assert [500.0] == [v for _, v in samples(compat.text(snapshot(3, pcie_receive_bytes_total=2000.0), openmetrics=False), name)]
    assert [] == samples(compat.text(snapshot(4, pcie_receive_bytes_total=5.0), openmetrics=False), name)


def test_the_last_xid() -> None:
    """The code of the newest error of the board, 0 before the first."""
    state = snapshot()
    stamps = tuple((labels(**dict(GPU), xid=code), t) for code, t in (("31", 900.0), ("79", 950.0)))
    later = state.with_values({"heptascope_gpu_xid_error_last_timestamp_seconds": stamps})
    texts = (Compat({}).text(s, openmetrics=False) for s in (state, later))
    assert [0.0, 79.0] == [samples(text, "DCGM_FI_DEV_XID_ERRORS")[0][1] for text in texts]


def test_every_twin_is_known_on_both_sides() -> None:
    """Each signal exists, and each name means the same to our reader of such pages."""
    assert {twin.signal for twin in TWINS} <= set(SCHEMA)
    unknown = {twin.name for twin in TWINS} - set(MEANINGS)
    assert {"DCGM_FI_DEV_SYNC_BOOST_VIOLATION"} == unknown


def test_what_is_missing_stays_missing() -> None:
    """A signal without a value has no twin, and no part of a sum is taken for 0."""
    state = snapshot()
    state = Snapshot(state.t, 1, {k: v for k, v in state.values.items() if "reserved" not in k and "power" not in k})
    text = Compat({}).text(state, openmetrics=False)
    assert [] == samples(text, "DCGM_FI_DEV_FB_FREE") + samples(text, "DCGM_FI_DEV_POWER_USAGE")


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text; version=1.0.0"])
def test_the_page_is_valid_in_both_formats(accept: str) -> None:
    """Appended to our own page it still parses; OpenMetrics has no counter without `_total`, so there such a family is unknown."""
    chosen = negotiate(accept)
    text = Exposition(Compat({})).page(snapshot(), 1001.0, chosen).plain.decode()
    parse = openmetrics_families if "openmetrics" in accept else text_string_to_metric_families
    types = {family.name: family.type for family in parse(text)}
    assert ("unknown" if "openmetrics" in accept else "counter") == types["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]
    assert "heptascope_gpu_power_watts" in types


def test_off_by_default() -> None:
    """Only where it is asked for, and never on a page that is restricted to some series."""
    state = MemoryState(snapshot())
    assert b"DCGM_FI" not in Client(create_app(state)).get("/metrics").content
    asked = Client(create_app(state, WebSettings.model_validate({"compat": "dcgm-exporter"})))
    assert b"DCGM_FI_DEV_POWER_USAGE" in asked.get("/metrics").content
    assert b"DCGM_FI" not in asked.get("/metrics?name[]=heptascope_gpu_power_watts").content


def test_the_documented_table_is_complete() -> None:
    """docs/gpu.md names every family beside the signal that it is made from."""
    rows = [line for line in (REPOSITORY / "docs" / "gpu.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `DCGM_FI")]
    told = {row.split("`")[1]: row for row in rows}
    assert [*(twin.name for twin in TWINS), "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_XID_ERRORS"] == list(told)
    assert all(f"| {twin.type} |" in told[twin.name] and twin.signal in told[twin.name] for twin in TWINS)
