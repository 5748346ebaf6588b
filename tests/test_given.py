"""Steady signals from a file: what a file may say, what is assumed beside it, and what is played."""

from __future__ import annotations

from pathlib import Path

import pytest

from heptascope.config import Settings
from heptascope.errors import UserError
from heptascope.given import DEFAULT_OBSERVATIONS_PER_SECOND, SECONDS, START, Given, read_given, readings, shape
from heptascope.model import Histogram, Labels, Reading, labels
from heptascope.offline import judge_readings
from heptascope.signals import label_values
from heptascope.signals.rates import quantile
from heptascope.signals.schema import SCHEMA
from heptascope.sources.gpu.layout import NVLINK_ERRORS, THROTTLE
from heptascope.sources.host.roles import API_SERVER, ENGINE_CORE, OTHER, WORKER
from heptascope.vllm_probe.layout import LIMITS

ENGINE, GPU = labels(engine="engine", rank="0"), labels(gpu="0")
LATENCY = "heptascope_engine_e2e_latency_seconds"


def written(folder: Path, text: str) -> Path:
    """Write a file of signals, one entry a line."""
    path = folder / "case.yaml"
    path.write_text("signals:\n" + "".join(f"  - {line}\n" for line in text.strip().splitlines()), encoding="utf-8")
    return path


def read(folder: Path, text: str) -> list[Given]:
    """Return what a file says."""
    return read_given(written(folder, text))


def values(reading: Reading) -> dict[tuple[str, Labels], float]:
    """Return a reading's samples, names without prefix."""
    return {(s.name.removeprefix("heptascope_"), s.labels): s.value for s in reading.samples}


def test_the_documented_example(tmp_path: Path) -> None:
    """Gauges by value, counters by rate, histograms by distribution; labels that are left out are those of one engine and one GPU."""
    given = read(
        tmp_path,
        """
{name: heptascope_engine_requests_running, value: 8}
{name: heptascope_engine_preemptions_total, rate: 0.5}
{name: heptascope_engine_inter_token_latency_seconds, distribution: {p50: 0.006, p99: 0.2, mean: 0.015, rate: 900}}
{name: heptascope_gpu_sm_active_ratio, labels: {gpu: "1"}, value: 0.4}
""",
    )
    assert [ENGINE, ENGINE, ENGINE, labels(gpu="1")] == [g.pairs for g in given]
    assert [8.0, 0.5, 0.0, 0.4] == [g.value for g in given]
    assert {"p50": 0.006, "p99": 0.2, "mean": 0.015, "rate": 900.0} == given[2].distribution


RUNNING, PREEMPTED = "heptascope_engine_requests_running", "heptascope_engine_preemptions_total"
NUMBER = f"{RUNNING} is a gauge and needs a number as `value`"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "name: heptascope_engine_requests_runing, value: 1",
            f"unknown signal 'heptascope_engine_requests_runing'; did you mean '{RUNNING}'?",
        ),
        ("name: nothing, value: 1", "unknown signal 'nothing'; see docs/metrics.md"),
        ("name: heptascope_source_up, labels: {source: x}, value: 1", "unknown signal 'heptascope_source_up'"),
        ("name: heptascope_verdict, labels: {state: idle}, value: 1", "unknown signal 'heptascope_verdict'"),
        (f"name: {RUNNING}, rate: 1", f"{RUNNING} is a gauge, which has no 'rate'; give name, labels, value"),
        (f"name: {PREEMPTED}, value: 1", f"{PREEMPTED} is a counter, which has no 'value'; give name, labels, rate"),
        (f"name: {LATENCY}, value: 1", f"{LATENCY} is a histogram, which has no 'value'; give name, labels, distribution"),
        (f"name: {PREEMPTED}, rate: -1", f"{PREEMPTED} is a counter; its rate cannot be negative"),
        (f"name: {RUNNING}", NUMBER),
        (f"name: {RUNNING}, value: many", NUMBER),
        (f"name: {RUNNING}, value: true", NUMBER),
        (f"name: {RUNNING}, value: .nan", NUMBER),
        (f"name: {RUNNING}, value: .inf", NUMBER),
        (f"name: {RUNNING}, labels: {{gpu: 0}}, value: 1", f"{RUNNING} has no label 'gpu'; its labels are: engine, rank"),
        ("name: heptascope_host_load1, labels: {gpu: 0}, value: 1", "heptascope_host_load1 has no label 'gpu'; its labels are: none"),
        (f"name: {RUNNING}, labels: [gpu], value: 1", "labels must be a mapping"),
        ("name: heptascope_host_process_threads, value: 1", "heptascope_host_process_threads needs the label 'role';"),
        ("name: heptascope_engine_slo_seconds, value: 1", "heptascope_engine_slo_seconds needs the label 'latency';"),
        (
            "name: heptascope_gpu_throttle_seconds_total, labels: {reason: fan}, rate: 1",
            "heptascope_gpu_throttle_seconds_total has no reason 'fan'; it is one of: power_cap, hardware_slowdown, sync_boost",
        ),
        (
            "name: heptascope_host_process_threads, labels: {role: main}, value: 1",
            "heptascope_host_process_threads has no role 'main'; it is one of: api_server, engine_core, worker, other",
        ),
        (f"name: {LATENCY}", f"{LATENCY} is a histogram and needs a `distribution`; with some of: p50, p99, mean, rate"),
        (f"name: {LATENCY}, distribution: 3", f"{LATENCY} is a histogram and needs a `distribution`"),
        (f"name: {LATENCY}, distribution: {{p95: 3}}", f"{LATENCY} is a histogram and needs a `distribution`"),
        (f"name: {LATENCY}, distribution: {{p50: 3, p99: 1}}", f"{LATENCY}: p50 is above p99"),
        pytest.param(f"name: {RUNNING}, value: {'9' * 400}", NUMBER, id="digits"),
        (f"name: {RUNNING}, value: -1.0e+300", NUMBER),
        (f"name: {LATENCY}, distribution: {{p99: 1.7e+308}}", f"{LATENCY}: a distribution's numbers must be finite and not negative"),
        (f"name: {LATENCY}, distribution: {{p50: -1}}", f"{LATENCY}: a distribution's numbers must be finite and not negative"),
        (f"name: {LATENCY}, distribution: {{p50: .inf}}", f"{LATENCY}: a distribution's numbers must be finite and not negative"),
        (f"name: {LATENCY}, distribution: {{rate: 1}}", f"{LATENCY}: a distribution needs p50, p99 or mean"),
        ("value: 1", "a signal must be a mapping with `name`"),
    ],
)
def test_one_line_for_each_mistake(tmp_path: Path, line: str, message: str) -> None:
    """What is wrong, at its line, and what is allowed."""
    with pytest.raises(UserError) as caught:
        read(tmp_path, f"{{name: heptascope_engine_requests_waiting, value: 0}}\n{{{line}}}")
    assert f"{tmp_path}/case.yaml:3: {message}" == str(caught.value)[: len(f"{tmp_path}/case.yaml:3: {message}")]
    assert 1 == len(str(caught.value).splitlines())


@pytest.mark.parametrize(
    "text", ["", "signals: []\n", "signals: 3\n", "signal: []\n", "signals:\n- {name: heptascope_host_load1, value: 1}\nmore: 1\n"]
)
def test_a_file_of_another_shape(tmp_path: Path, text: str) -> None:
    """An empty file, an empty list, another key: the shape is told."""
    path = tmp_path / "case.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(
        UserError, match=r"case\.yaml:1: the file must hold one key, `signals`, with a list; see heptascope diagnose --help"
    ):
        read_given(path)


def test_the_same_series_twice(tmp_path: Path) -> None:
    """Two values for one series contradict each other; other labels are another series."""
    text = "{name: heptascope_gpu_power_watts, value: 1}\n{name: heptascope_gpu_power_watts, labels: {gpu: 1}, value: 2}\n"
    assert 2 == len(read(tmp_path, text))
    with pytest.raises(UserError, match=r"case\.yaml:4: heptascope_gpu_power_watts with these labels is here twice, first on line 2"):
        read(tmp_path, text + "{name: heptascope_gpu_power_watts, value: 3}")


@pytest.mark.parametrize(
    ("name", "label", "given", "meant"),
    [
        ("heptascope_gpu_throttle_seconds_total", "reason", "SW_Thermal_Slowdown", "software_thermal"),
        ("heptascope_gpu_throttle_seconds_total", "reason", "sw_power_cap", "power_cap"),
        ("heptascope_gpu_ecc_errors_total", "kind", "double-bit", "uncorrected"),
        ("heptascope_engine_http_requests_total", "status", "503", "5xx"),
        ("heptascope_engine_requests_finished_total", "reason", "cancelled", "abort"),
        ("heptascope_engine_requests_finished_total", "reason", "length", "length"),
        ("heptascope_engine_requests_rejected_total", "reason", "cancelled", "cancelled"),
        ("heptascope_host_process_cpu_seconds_total", "role", "scheduler", "engine_core"),
    ],
)
def test_labels_spelled_as_elsewhere(tmp_path: Path, name: str, label: str, given: str, meant: str) -> None:
    """A value that NVML, DCGM or an engine spells in another way is the one that the sources write."""
    (found,) = read(tmp_path, f'{{name: {name}, labels: {{{label}: "{given}"}}, rate: 1}}')
    assert meant == dict(found.pairs)[label]


def test_the_lists_of_labels_are_the_sources_own() -> None:
    """What may be given is what the sources write."""
    assert tuple(reason.reason for reason in THROTTLE) == label_values.values("heptascope_gpu_throttle_seconds_total", "reason")
    assert {kind for field in NVLINK_ERRORS for _, kind in field.labels} == {
        *label_values.values("heptascope_gpu_nvlink_errors_total", "kind")
    }
    assert (API_SERVER, ENGINE_CORE, WORKER, OTHER) == label_values.values("heptascope_host_process_info", "role")
    assert LIMITS == label_values.values("heptascope_engine_step_bound_total", "limit")


# what is played


def played(folder: Path, text: str) -> list[Reading]:
    """Return the readings of a file."""
    return list(readings(read(folder, text)))


def test_gauges_stand_and_counters_grow(tmp_path: Path) -> None:
    """Each second the same value, and counters by their rate."""
    found = played(tmp_path, "{name: heptascope_engine_requests_running, value: 8}\n{name: heptascope_engine_preemptions_total, rate: 0.5}")
    assert [START + second for second in range(SECONDS + 1)] == [r.t for r in found]
    assert {8.0} == {values(r)["engine_requests_running", ENGINE] for r in found}
    assert [0.5 * second for second in range(SECONDS + 1)] == [values(r)["engine_preemptions_total", ENGINE] for r in found]


def test_an_activity_counter_is_its_ratio(tmp_path: Path) -> None:
    """Busy seconds a second are a ratio, from which the store makes the counter again; the time covered comes with it."""
    found = played(
        tmp_path,
        "{name: heptascope_gpu_sm_active_seconds_total, rate: 0.4}\n{name: heptascope_gpu_sm_active_sampled_seconds_total, rate: 1}",
    )
    assert 0.4 == values(found[0])["gpu_sm_active_ratio", GPU]
    assert not {name for name, _ in values(found[0])} & {"gpu_sm_active_seconds_total", "gpu_sm_active_sampled_seconds_total"}


def test_identities_are_filled_in(tmp_path: Path) -> None:
    """An engine and a GPU of which anything is told are there; unless the file says what they are."""
    found = values(
        played(tmp_path, "{name: heptascope_engine_preemptions_total, rate: 0}\n{name: heptascope_gpu_power_watts, value: 1}")[0]
    )
    assert (1.0, 1.0) == (found["engine_info", ENGINE], found["gpu_info", GPU])
    named = labels(kind="sglang", **dict(ENGINE))
    told = values(played(tmp_path, "{name: heptascope_engine_info, labels: {kind: sglang}}\n{name: heptascope_host_load1, value: 1}")[0])
    assert {named} == {pairs for name, pairs in told if name == "engine_info"}


@pytest.mark.parametrize(
    ("line", "work"),
    [
        ("{name: heptascope_engine_preemptions_total, rate: 1}", 1.0),
        ("{name: heptascope_engine_steps_total, rate: 100}", 1.0),
        ("{name: heptascope_engine_requests_running, value: 0}", None),
        ("{name: heptascope_engine_generation_tokens_total, rate: 0}", None),
        ("{name: heptascope_engine_has_work, value: 0}", 0.0),
    ],
)
def test_an_engine_works_unless_the_file_speaks_of_load(tmp_path: Path, line: str, work: float | None) -> None:
    """Whoever asks about signals of an engine without saying how much it does means one that works."""
    assert work == values(played(tmp_path, line)[0]).get(("engine_has_work", ENGINE))


@pytest.mark.parametrize(
    ("line", "on"),
    [
        ("engine_requests_running, value: 1", 0.0),
        ("engine_spec_draft_tokens_total, rate: 1", 1.0),
        ("engine_speculation_enabled, value: 1", 1.0),
    ],
)
def test_speculation_is_off_unless_the_file_speaks_of_it(tmp_path: Path, line: str, on: float) -> None:
    """A file that names no signal of speculation is about an engine without it."""
    assert on == values(played(tmp_path, f"{{name: heptascope_{line}}}")[0])["engine_speculation_enabled", ENGINE]


def test_graphs_are_on_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    """Engines capture CUDA graphs as a rule; whoever asks about eager mode says so."""
    lines = ("{name: heptascope_engine_requests_running, value: 1}", "{name: heptascope_engine_eager_mode, value: 1}")
    assert [0.0, 1.0] == [values(played(tmp_path, line)[0])["engine_eager_mode", ENGINE] for line in lines]


def test_gpus_alone_serve_a_working_engine(tmp_path: Path) -> None:
    """A file about GPUs alone is about those of an engine that works."""
    found = values(played(tmp_path, "{name: heptascope_gpu_dram_active_ratio, value: 0.7}")[0])
    assert (1.0, 1.0, 1.0) == tuple(found[f"engine_{name}", ENGINE] for name in ("info", "has_work", "tensor_parallel_size"))


@pytest.mark.parametrize(
    ("lines", "work"),
    [
        ("{name: heptascope_gpu_memory_clock_hertz, value: 1}", 1.0),
        ("{name: heptascope_gpu_power_watts, value: 1}", None),
        ("{name: heptascope_gpu_sm_active_ratio, value: 0.5}", None),
        ("{name: heptascope_gpu_sm_active_seconds_total, rate: 0.5}", None),
        ("{name: heptascope_gpu_memory_clock_hertz, value: 1}\n{name: heptascope_engine_requests_running, value: 8}", 1.0),
        ("{name: heptascope_gpu_memory_clock_hertz, value: 1}\n{name: heptascope_engine_requests_running, value: 0}", None),
        ("{name: heptascope_gpu_memory_clock_hertz, value: 1}\n{name: heptascope_engine_has_work, value: 0}", None),
        ("{name: heptascope_gpu_memory_clock_hertz, value: 1}\n{name: heptascope_gpu_has_work, value: 0}", 0.0),
    ],
)
def test_a_gpu_works_unless_the_file_speaks_of_its_activity(tmp_path: Path, lines: str, work: float | None) -> None:
    """Nor does it where the engine has no load; a file that says whether it works is believed."""
    assert work == values(played(tmp_path, lines)[0]).get(("gpu_has_work", GPU))


def test_all_gpus_of_the_file_serve_its_engine(tmp_path: Path) -> None:
    """Those that the stages of a pipeline leave share its layers; where there are two engines nobody knows."""
    gpus = "".join(f"{{name: heptascope_gpu_power_watts, labels: {{gpu: {gpu}}}, value: 1}}\n" for gpu in range(4))
    one = "{name: heptascope_engine_requests_running, value: 1}\n"
    two = "{name: heptascope_engine_requests_running, labels: {engine: b}, value: 1}\n"
    sized = "{name: heptascope_engine_pipeline_parallel_size, value: 2}\n"
    assert [4.0, None, 2.0] == [
        values(played(tmp_path, text)[0]).get(("engine_tensor_parallel_size", ENGINE))
        for text in (gpus + one, gpus + one + two, gpus + one + sized)
    ]


def test_latencies_beside_an_empty_queue_are_work(tmp_path: Path) -> None:
    """Nobody waits, yet tokens come: the engine works, whatever it does not tell; with nothing running it rests."""
    text = f"{{name: heptascope_engine_requests_waiting, value: 0}}\n{{name: {LATENCY}, distribution: {{p50: 1, rate: 4}}}}\n"
    assert 1.0 == values(played(tmp_path, text)[-1])["engine_has_work", ENGINE]
    assert ("engine_has_work", ENGINE) not in values(played(tmp_path, text + f"{{name: {RUNNING}, value: 0}}")[-1])
    assert ("engine_has_work", ENGINE) not in values(played(tmp_path, text.replace("rate: 4", "rate: 0"))[-1])


def test_a_process_waits_for_no_cpu_unless_the_file_says_so(tmp_path: Path) -> None:
    """A process with CPU time and nothing about its run queue is not starved."""
    cpu = "{name: heptascope_host_process_cpu_seconds_total, labels: {role: engine_core}, rate: 1}\n"
    where = labels(engine="engine", role="engine_core")
    assert 0.0 == values(played(tmp_path, cpu)[-1])["host_process_run_queue_seconds_total", where]
    told = cpu + "{name: heptascope_host_process_run_queue_seconds_total, labels: {role: engine_core}, rate: 0.5}\n"
    assert 0.5 * SECONDS == values(played(tmp_path, told)[-1])["host_process_run_queue_seconds_total", where]


# distributions


@pytest.mark.parametrize(("p50", "p99"), [(0.006, 0.2), (1.0, 10.0), (2.0, 2.0), (0.01, 0.0101), (1e-9, 5.0)])
def test_a_distribution_has_its_quantiles(p50: float, p99: float) -> None:
    """Quantiles that Prometheus estimates from the buckets are those that were asked for, within two per cent."""
    bounds, shares, _, _ = shape({"p50": p50, "p99": p99})
    assert list(bounds) == sorted(bounds)
    assert list(shares) == sorted(shares)
    assert [pytest.approx(p50, rel=0.02), pytest.approx(p99, rel=0.02)] == [quantile(q, bounds, shares) for q in (0.5, 0.99)]


@pytest.mark.parametrize(
    ("given", "mean", "rate"),
    [({"p50": 1.0}, 1.0, DEFAULT_OBSERVATIONS_PER_SECOND), ({"mean": 3.0, "rate": 5.0}, 3.0, 5.0), ({"p99": 2.0, "rate": 0.0}, 2.0, 0.0)],
)
def test_what_a_distribution_leaves_out(given: dict[str, float], mean: float, rate: float) -> None:
    """One number stands for all, with ten observations a second."""
    assert (pytest.approx(mean, rel=0.02), rate) == shape(given)[2:]


def test_a_mean_between_quantiles_is_worked_out() -> None:
    """Without a mean it is that of the shape: more than the median, since the tail is long."""
    bounds, shares, mean, _ = shape({"p50": 1.0, "p99": 10.0})
    inside = sum((b - a) * (low + high) / 2 for a, b, low, high in zip(shares, shares[1:-1], bounds, bounds[1:-1], strict=False))
    assert pytest.approx(inside) == mean
    assert 1.0 < mean < 5.0


def test_a_histogram_is_played(tmp_path: Path) -> None:
    """Its buckets, sum and count grow by the rate."""
    (found,) = played(tmp_path, f"{{name: {LATENCY}, distribution: {{p50: 1, p99: 3, mean: 2, rate: 4}}}}")[10].histograms
    assert isinstance(found, Histogram)
    assert (pytest.approx(40.0), pytest.approx(80.0), pytest.approx(20.0)) == (found.counts[-1], found.sum, found.counts[1])


def test_every_signal_can_be_given(tmp_path: Path) -> None:
    """Whatever the table has from a source, or derives, can be asked about, and is taken as it is."""
    field = {"gauge": "value: 1", "info": "value: 1", "counter": "rate: 1", "histogram": "distribution: {p50: 1}"}
    rows = [row for row in SCHEMA.values() if "self" not in row.suppliers]
    which = {"role": "engine_core", "resource": "dram", "latency": "e2e_latency"}
    lines = []
    for row in rows:
        known = {label: (label_values.values(row.name, label) or (value,))[0] for label, value in which.items() if label in row.labels}
        pairs = ", ".join(f"{label}: {value}" for label, value in known.items())
        lines.append(f"{{name: {row.name}, labels: {{{pairs}}}, {field[row.kind.value]}}}\n")
    text = "".join(lines)
    assert len(rows) == len(read(tmp_path, text))
    verdict = judge_readings(readings(read(tmp_path, text)), Settings())
    assert verdict["state"] in ("healthy", "degraded", "idle", "cannot-tell")
