"""Pages of dcgm-exporter of every generation, and pages that are frozen, blank, doubled or without what tells GPUs apart."""

from __future__ import annotations

import json

import pytest

from heptascope.model import Quality, Reading, Reason, labels
from heptascope.signals.schema import SCHEMA
from heptascope.sources.base import SourceError
from heptascope.sources.engine.fetch import Fetched
from heptascope.sources.gpu import dcgm_exporter
from heptascope.sources.gpu.attribution import Owned
from heptascope.sources.gpu.dcgm_exporter import DcgmExporterSource
from heptascope.sources.gpu.dcgm_exporter_table import is_blank
from heptascope.sources.gpu.rows import GpuRows
from support.dcgm_pages import Gpu, page
from support.fake_nvml import FakeClock
from support.gpu_rows import reasons, value, values


class Bench:
    """A source whose pages are what a test says; time passes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *pages: str | SourceError, **options: object) -> None:
        """Serve `pages`, one per URL."""
        self.pages: list[str | SourceError] = list(pages)
        self.clock = FakeClock()
        monkeypatch.setattr(dcgm_exporter, "Fetcher", self._fetcher)
        urls = [f"http://{number}:9400/metrics" for number, _ in enumerate(pages)]
        self.source = DcgmExporterSource(urls, clock=self.clock, now=self.clock, **options)  # type: ignore[arg-type]  # as the test says

    def read(self, seconds: float = 5.0) -> Reading:
        """Let time pass and read."""
        self.clock.t += seconds
        return self.source.read(self.clock())

    def _fetcher(self, timeout: float, credentials: str) -> Bench:
        return self

    def get(self, url: str) -> Fetched:
        """Return the page of a URL."""
        found = self.pages[int(url[7])]
        if isinstance(found, SourceError):
            raise found
        return Fetched(200, "text/plain", found)

    def close(self) -> None:
        """Close nothing."""


@pytest.mark.parametrize("generation", ["1.x", "legacy", "4.9"])
def test_every_generation_gives_the_same(monkeypatch: pytest.MonkeyPatch, generation: str) -> None:
    """Names, units and label spellings differ between generations; the values are the same, in base units."""
    reading = Bench(monkeypatch, page(generation)).read()
    expected = {
        "power_watts": 690.697, "sm_clock_hertz": 1.455e9, "memory_clock_hertz": 3.201e9, "temperature_celsius": 53.0,
        "utilization_ratio": 0.99, "energy_joules_total": 9663.2, "memory_used_bytes": 8718.0 * 2**20,
    }  # fmt: skip
    assert expected == pytest.approx({name: value(reading, name) for name in expected})
    if generation != "1.x":
        shares = {"graphics_engine_active_ratio": 0.99051, "tensor_active_ratio": 0.92818, "dram_active_ratio": 0.15966}
        assert shares == pytest.approx({name: value(reading, name) for name in shares})
        info = dict(next(iter(values(reading, "info"))))
        assert ("NVIDIA H200", "580.159.04", "0000:06:00.0") == (info["model"], info["driver"], info["pci_bus_id"])
        assert 143771.0 * 2**20 == pytest.approx(value(reading, "memory_total_bytes"), rel=1e-4)
    assert {labels(gpu="0", uuid="GPU-0")} == set(values(reading, "power_watts"))


def test_utilisation_under_its_ambiguous_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPU_UTIL_RATIO is 0 to 100 before 4.9 in spite of its name; the generation decides, or the configuration."""
    gpu = Gpu()
    gpu.values = {"DCGM_FI_DEV_GPU_UTIL_RATIO": 57.0}
    text = "\n".join(line for line in page("legacy", gpu).splitlines() if "GPU_UTIL{" not in line) + "\n"
    assert 0.57 == pytest.approx(value(Bench(monkeypatch, text).read(), "utilization_ratio"))
    assert 0.57 == pytest.approx(value(Bench(monkeypatch, text.replace(" 57.0", " 0.57"), unit="ratio").read(), "utilization_ratio"))


def test_field_449_is_no_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    """The NVLink total is a rate of both directions typed as counter: it never becomes a byte counter, and the remedy is named."""
    reading = Bench(monkeypatch, page("legacy")).read()
    assert {} == values(reading, "nvlink_receive_bytes_total")
    (gap,) = reasons(reading, "nvlink_receive_bytes_total")
    assert (Reason.FLAG_OFF, True) == (gap.reason, "is a rate of both directions" in gap.detail)


def test_what_the_page_lacks_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that this exporter does not export is named as it must be added."""
    reading = Bench(monkeypatch, page("legacy")).read()
    (gap,) = reasons(reading, "sm_active_ratio")
    assert (Reason.FLAG_OFF, "the page has no DCGM_FI_PROF_SM_ACTIVE; add it to the exporter's counters") == (gap.reason, gap.detail)


def test_every_signal_has_a_value_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """What dcgm-exporter can supply is there, or the reading says why not."""
    bench = Bench(monkeypatch, page("legacy"))
    reading = bench.read()
    told = {sample.name for sample in reading.samples} | {gap.signal for gap in reading.missing}
    integrals = {row.integral for row in SCHEMA.values()}
    integrals |= {name.replace("_seconds_total", "_sampled_seconds_total") for name in integrals}
    wanted = {
        n for n, row in SCHEMA.items() if "dcgm_exporter" in row.suppliers and n.startswith("heptascope_gpu_") and "instance" not in n
    }
    assert set() == wanted - integrals - told


def test_a_value_counts_once_per_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exporter collects each 30 s and is read each 5: a sample stands for the time since the one before, and is counted once."""
    bench = Bench(monkeypatch, page("legacy"))
    windows = []
    for turn in range(13):
        bench.pages[0] = page("legacy", DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION=9663200 + 20000 * (turn // 6))
        reading = bench.read()
        windows += [s.window for s in reading.samples if s.name == "heptascope_gpu_dram_active_ratio"]
    assert [30.0, 30.0] == [w for w in windows if w > 1e-6]
    assert 13 == len(windows)
    pairs = labels(gpu="0", uuid="GPU-0")
    assert Quality.APPROXIMATE == reading.quality["heptascope_gpu_dram_active_ratio", pairs]
    assert 60.0 * 11613020 == pytest.approx(value(reading, "pcie_receive_bytes_total"), rel=1e-3)


def test_a_frozen_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Energy must grow: a page that stands still for two minutes is stale, however green the exporter's health is."""
    bench = Bench(monkeypatch, page("legacy"))
    bench.read()
    bench.read(119.0)
    with pytest.raises(SourceError, match="nothing on the page has changed for 121 s; restart dcgm-exporter") as caught:
        bench.read(2.0)
    assert Reason.STALE == caught.value.reason
    bench.pages[0] = page("legacy", DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION=9999999)
    assert 1.0 == value(bench.read(), "up")


def test_one_frozen_gpu_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU whose values alone stand still is lost; the other goes on."""
    bench = Bench(monkeypatch, "")
    for turn in range(30):
        alive = Gpu(1)
        alive.values = {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 100.0 + turn}
        bench.pages[0] = page("legacy", Gpu(0), alive)
        reading = bench.read()
    assert {"0": 0.0, "1": 1.0} == {dict(pairs)["gpu"]: v for pairs, v in values(reading, "up").items()}
    assert {labels(gpu="1", uuid="GPU-1")} == set(values(reading, "power_watts"))


@pytest.mark.parametrize("blank", [9.223372036854775808e18, 140737488355328, 140737488355330, 2147483632, float("nan")])
def test_blanks_in_text(monkeypatch: pytest.MonkeyPatch, blank: float) -> None:
    """Old releases print DCGM's blanks as numbers: each is absent, with the reason, and never scaled into something plausible."""
    reading = Bench(monkeypatch, page("legacy", DCGM_FI_DEV_GPU_TEMP=blank, DCGM_FI_DEV_SM_CLOCK=blank)).read()
    for name in ("temperature_celsius", "sm_clock_hertz"):
        assert {} == values(reading, name)
        assert ["dcgm-exporter shows a blank"] == [m.detail for m in reasons(reading, name)]
    assert 690.697 == value(reading, "power_watts")


def test_a_counter_may_pass_the_small_blank() -> None:
    """The four exact small blanks are one of everything; beside them there are numbers of nanoseconds and bytes, but no temperature."""
    keys = ("temp_c", "throttle", "ecc_uncorrected", "energy_mj", "power_cap_ns", "mem_used")
    assert [True] * 6 == [is_blank(2147483635.0, key) for key in keys]
    assert [True] * 3 + [False] * 3 == [is_blank(2147483636.0, key) for key in keys]


@pytest.mark.parametrize("text", ["²", "-1", "9" * 5000, "nvlink0"], ids=["superscript", "negative", "long", "link"])
def test_a_label_that_is_no_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A GPU or an instance must have a number; a series without one is of something else, and the GPU's own go on."""
    odd = page("legacy", Gpu(0)).replace('gpu="0"', f'gpu="{text}"') + page("legacy", Gpu(1, GPU_I_ID=text))
    reading = Bench(monkeypatch, odd + page("legacy", Gpu(2))).read()
    assert {"2"} == {dict(pairs)["gpu"] for pairs in values(reading, "up")}


def test_numbers_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinities of either sign are blanks, also where a code or a mask should stand."""
    odd = {"DCGM_FI_DEV_XID_ERRORS": float("-inf"), "DCGM_FI_DEV_POWER_USAGE": float("-inf"), "DCGM_FI_DEV_SM_CLOCK": float("inf")}
    reading = Bench(monkeypatch, page("legacy", **odd)).read()
    for name in ("power_watts", "sm_clock_hertz"):
        assert ["dcgm-exporter shows a blank"] == [m.detail for m in reasons(reading, name)]
    assert 1.0 == value(reading, "up")


def test_doubled_series(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that several pods share comes once per pod: equal values are the board's, different ones belong to nobody we can name."""
    one, two = Gpu(0, pod="a", vgpu="0"), Gpu(0, pod="b", vgpu="1")
    two.values = {"DCGM_FI_DEV_FB_USED": 1.0}
    reading = Bench(monkeypatch, page("legacy", one, two)).read()
    assert 690.697 == value(reading, "power_watts")
    assert {} == values(reading, "memory_used_bytes")
    assert [Reason.AMBIGUOUS] == [m.reason for m in reasons(reading, "memory_used_bytes")]


def test_no_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without uuid GPUs are told apart by their index, and the label stays away."""
    reading = Bench(monkeypatch, page("legacy", Gpu(0, ""), Gpu(1, ""))).read()
    assert {labels(gpu="0"), labels(gpu="1")} == set(values(reading, "power_watts"))


def test_mig_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of instances carry the parent's uuid: activity and memory are theirs, board values repeated on them count once."""
    one, two = Gpu(0, GPU_I_ID="1", GPU_I_PROFILE="4g.71gb"), Gpu(0, GPU_I_ID="2", GPU_I_PROFILE="3g.71gb")
    two.values = {"DCGM_FI_PROF_DRAM_ACTIVE": 0.5, "DCGM_FI_DEV_FB_USED": 10}
    reading = Bench(monkeypatch, page("legacy", one, two)).read()
    found = {dict(pairs)["instance"]: v for pairs, v in values(reading, "instance_dram_active_ratio").items()}
    assert {"1": 0.15966, "2": 0.5} == pytest.approx(found)
    assert [690.697] == list(values(reading, "power_watts").values())
    assert {} == values(reading, "dram_active_ratio")
    assert {"4g.71gb", "3g.71gb"} == {dict(pairs)["profile"] for pairs in values(reading, "instance_info")}


def test_xids_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has the last code, which never clears: a change is one more error, with the time at which it was seen."""
    bench = Bench(monkeypatch, page("legacy", DCGM_FI_DEV_XID_ERRORS=31))
    bench.read()
    bench.pages[0] = page("legacy", DCGM_FI_DEV_XID_ERRORS=79)
    reading = bench.read()
    assert (0.0, 1.0) == tuple(value(reading, "xid_errors_total", xid=code) for code in ("31", "79"))
    assert bench.clock() == value(reading, "xid_error_last_timestamp_seconds", xid="79")


@pytest.mark.parametrize("code", [-31.0, 1e18])
def test_a_code_that_is_no_xid(monkeypatch: pytest.MonkeyPatch, code: float) -> None:
    """It makes no series, and the reason says so; the counts go on after it."""
    bench = Bench(monkeypatch, page("legacy", DCGM_FI_DEV_XID_ERRORS=0))
    bench.read()
    bench.pages[0] = page("legacy", DCGM_FI_DEV_XID_ERRORS=code)
    reading = bench.read()
    assert ({}, Reason.INVALID) == (values(reading, "xid_errors_total"), reasons(reading, "xid_errors_total")[0].reason)
    bench.pages[0] = page("legacy", DCGM_FI_DEV_XID_ERRORS=79)
    assert 1.0 == value(bench.read(), "xid_errors_total", xid="79")


def test_stuck_profiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three samples of a busy GPU with profiling at 0 after an XID error: flagged, and the zeros are withheld until values come again."""
    bench = Bench(monkeypatch, page("legacy"))
    still = {"DCGM_FI_DEV_GPU_UTIL": 100.0, "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 0.0, "DCGM_FI_DEV_XID_ERRORS": 31.0}
    flags = []
    for turn in range(6):
        changes = still if 1 <= turn <= 4 else {"DCGM_FI_DEV_XID_ERRORS": 31.0 if turn else 0.0}
        bench.pages[0] = page("legacy", **changes, DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION=9663200.0 + turn)
        for _ in range(2):
            reading = bench.read(15.0)
            shown = len(values(reading, "graphics_engine_active_ratio"))
            flags.append((value(reading, "profiling_stuck"), shown))
    assert [(0.0, 1)] * 6 + [(1.0, 0)] * 4 + [(0.0, 1)] * 2 == flags


def test_several_exporters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page adds its GPUs; one that cannot be read costs its own alone and is named, all of them are an error."""
    down = SourceError(Reason.SOURCE_DOWN, "http://1:9400/metrics: Connection refused")
    bench = Bench(monkeypatch, page("legacy"), page("4.9", Gpu(1)))
    assert 2 == len(values(bench.read(), "up"))
    bench.pages[1] = down
    reading = bench.read()
    assert 1 == len(values(reading, "up"))
    assert ["http://1:9400/metrics: Connection refused"] == [m.detail for m in reasons(reading, "up")]
    bench.pages[0] = down
    with pytest.raises(SourceError, match="Connection refused"):
        bench.read()


def test_no_gpu_on_the_page_and_none_of_those_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of something else, and devices that are not there: one line each."""
    with pytest.raises(SourceError, match="the page has no GPU; is this a dcgm-exporter"):
        Bench(monkeypatch, "# TYPE up gauge\nup 1\n").read()
    with pytest.raises(SourceError, match=r"none of the GPUs asked for \(7\) is there; the pages show: 0 \(GPU-0\)"):
        Bench(monkeypatch, page("legacy"), devices=("7",)).read()


def own_pod(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> Owned | str:
    """Return what the pod labels of a page with three GPUs say."""
    gpus = (Gpu(0, pod="mine", namespace="ml"), Gpu(1, pod="other", namespace="ml"), Gpu(2, GPU_I_ID="3", pod="mine", namespace="ml"))
    bench = Bench(monkeypatch, page("legacy", *gpus))
    bench.read()
    return bench.source.own_pod(environ)()


def test_pod_labels_tell_whose_a_gpu_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod's GPUs by name and namespace; a MIG instance by board and number."""
    found = own_pod(monkeypatch, {"POD_NAME": "mine", "POD_NAMESPACE": "ml"})
    assert Owned(frozenset({"GPU-0", "MIG-GPU-2/3/0"}), "pod", "the pod labels of dcgm-exporter") == found
    assert "no GPU on the page has this pod's labels (mine)" == own_pod(monkeypatch, {"HOSTNAME": "mine", "POD_NAMESPACE": "else"})


def test_replay_of_the_live_rows_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a recording keeps gives the same samples, split over the two kinds of rows."""
    live = Bench(monkeypatch, page("legacy"))
    reading = live.read()
    assert reading.raw is not None
    rows = GpuRows(json.loads(json.dumps(live.source.header)))
    stored = json.loads(json.dumps(reading.raw["rows"]))
    fast = rows.fast([row for row in stored if row["kind"] == "gpu"])
    slow = rows.slow([row for row in stored if row["kind"] == "slow"])
    assert reading.samples == fast.samples + slow.samples


def test_credentials_in_a_url_are_in_no_message() -> None:
    """A page that cannot be read is named without them."""
    with pytest.raises(SourceError) as caught:
        DcgmExporterSource(["http://some:secret@127.0.0.1:9/metrics"]).read(0.0)
    assert str(caught.value).startswith("http://127.0.0.1:9/metrics: ")
