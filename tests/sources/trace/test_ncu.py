"""Nsight Compute's tables: long and wide, with separators of several countries."""

from __future__ import annotations

import gzip
from io import BytesIO

import pytest

from heptascope.errors import UserError
from heptascope.sources.trace import ncu
from heptascope.sources.trace.ncu import Counters, KernelTable

GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_gemm>(Params)"
DURATION = "gpu__time_duration.sum"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
L2 = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
TENSOR = "sm__inst_executed_pipe_tensor.sum.pct_of_peak_sustained_active"
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def _read(text: str) -> KernelTable:
    return ncu.read(BytesIO(text.encode()), "t.csv")


def _long(*rows: tuple[str, str, str, str, str]) -> str:
    """Write kernels (id, name) with their metrics (name, unit, value), after the lines that ncu prints first."""
    head = '"ID","Process ID","Kernel Name","Context","Stream","Section Name","Metric Name","Metric Unit","Metric Value"'
    lines = [f'"{i}","7","{kernel}","1","7","Speed","{metric}","{unit}","{value}"' for i, kernel, metric, unit, value in rows]
    return "\n".join(["program output, with a comma", "==PROF== Connected to process 7", head, *lines, "==PROF== Disconnected"]) + "\n"


def _wide(*rows: dict[str, str], units: dict[str, str]) -> str:
    columns = list(units)
    head = ",".join(f'"{c}"' for c in ("ID", "Kernel Name", *columns))
    lines = [",".join(f'"{v}"' for v in ("", "", *units.values()))]
    lines += [",".join(f'"{v}"' for v in (str(i), GEMM, *(row.get(c, "") for c in columns))) for i, row in enumerate(rows)]
    return "\n".join([head, *lines]) + "\n"


def test_long_table_of_the_details_page() -> None:
    """Labels of the details page, thousands separated by commas; the throughput in bytes is not the one in percent."""
    table = _read(
        _long(
            ("0", GEMM, "Duration", "us", "1,234.50"),
            ("0", GEMM, "Achieved Occupancy", "%", "45.5"),
            ("0", GEMM, "Compute (SM) Throughput", "%", "80.25"),
            ("0", GEMM, "Memory Throughput", "%", "30"),
            ("0", GEMM, "Memory Throughput", "Gbyte/second", "2,000.1"),
            ("0", GEMM, "DRAM Throughput", "%", "20"),
            ("0", GEMM, "L2 Cache Throughput", "%", "25"),
            ("1", "rms_norm", "Duration", "ns", "900"),
        )
    )
    expected = Counters("cutlass::Kernel2<…>", "gemm", 1234.5e-6, 0.455, 0.8025, 0.3, 0.2, 0.25)
    assert expected == table.kernels[0]
    assert ("rms_norm", "norm_elementwise", pytest.approx(900e-9)) == (
        table.kernels[1].name,
        table.kernels[1].kernel_class,
        table.kernels[1].seconds,
    )


def test_wide_table_of_the_raw_page() -> None:
    """Metric names as columns, units in the second row; stalls become shares, the issuing warp is none."""
    units = {DURATION: "msecond", OCCUPANCY: "%", SM: "%", DRAM: "%", TENSOR: "%"} | {
        STALL.format(s): "inst" for s in ("barrier", "wait", "selected")
    }
    row = {DURATION: "2.5", OCCUPANCY: "50", SM: "20", DRAM: "91", TENSOR: "12", STALL.format("barrier"): "3", STALL.format("wait"): "1"}
    (kernel,) = _read(_wide(row | {STALL.format("selected"): "9"}, units=units)).kernels
    assert (2.5e-3, 0.5, 0.91, 0.12, "memory") == (kernel.seconds, kernel.occupancy, kernel.dram, kernel.tensor, kernel.bound)
    assert {"barrier": 0.75, "wait": 0.25} == kernel.stalls


@pytest.mark.parametrize(("text", "expected"), [("9,00", 9e-9), ("1.234,5", 1234.5e-9), ("12", 12e-9)])
def test_decimal_commas_are_read(text: str, expected: float) -> None:
    """A table written under a locale with decimal commas says so by one number that cannot be read otherwise."""
    table = _read(_long(("0", GEMM, OCCUPANCY, "%", "40,25"), ("0", GEMM, DURATION, "nsecond", text)))
    assert (0.4025, pytest.approx(expected)) == (table.kernels[0].occupancy, table.kernels[0].seconds)


@pytest.mark.parametrize(
    ("sm", "memory", "expected"),
    [(0.7, 0.3, "compute"), (0.3, 0.7, "memory"), (0.59, 0.2, "latency"), (0.6, 0.2, "compute"), (0.2, None, ""), (None, 0.9, "")],
)
def test_roofline_side(sm: float | None, memory: float | None, expected: str) -> None:
    """The larger side bounds; below 60 % of both peaks it is latency; without both numbers it cannot be told."""
    assert expected == Counters("k", "other", sm=sm, memory=memory).bound


def test_means_are_weighted_by_time() -> None:
    """3 ms at 80 % and 1 ms at 40 %; a kernel that lacks the metric does not count."""
    kernels = [
        Counters("a", "gemm", 3e-3, occupancy=0.8, sm=0.9, dram=0.1),
        Counters("b", "gemm", 1e-3, occupancy=0.4, sm=0.1, dram=0.9),
        Counters("c", "gemm", 9),
    ]
    table = KernelTable("t.csv", kernels)
    assert (0.7, None) == (pytest.approx(table.mean("occupancy")), table.mean("tensor"))
    assert {"compute": 0.75, "memory": 0.25} == pytest.approx(table.bounds())
    samples = {(name, pairs): value for name, pairs, value in table.to_samples()}
    assert 0.7 == pytest.approx(table.mean("occupancy"))
    occupancy = {dict(pairs)["bound"]: value for (name, pairs), value in samples.items() if name.endswith("profiled_occupancy_ratio")}
    assert {"compute": 0.8, "memory": 0.4} == occupancy
    assert 0.25 == pytest.approx(samples["heptascope_trace_profiled_bound_ratio", (("bound", "memory"),)])


def test_values_that_are_no_numbers_are_absent() -> None:
    """`n/a` and empty cells are not 0."""
    table = _read(_long(("0", GEMM, DURATION, "ns", "10"), ("0", GEMM, OCCUPANCY, "%", "n/a"), ("0", GEMM, SM, "%", "")))
    assert (None, None) == (table.kernels[0].occupancy, table.kernels[0].sm)


def test_a_kernel_without_a_time_does_not_outweigh_the_others() -> None:
    """Beside kernels of microseconds it has no weight; where no kernel has a time all count alike."""
    timed = Counters("a", "gemm", 3e-6, sm=0.9, memory=0.1, stalls={"wait": 1.0})
    other = Counters("b", "gemm", None, sm=0.1, memory=0.9, stalls={"barrier": 1.0})
    assert ({"compute": 1.0, "memory": 0.0}, {"wait": 1.0, "barrier": 0.0}) == (
        KernelTable("t.csv", [timed, other]).bounds(),
        KernelTable("t.csv", [timed, other]).stalls(),
    )
    timed.seconds = None
    assert {"compute": 0.5, "memory": 0.5} == KernelTable("t.csv", [timed, other]).bounds()


@pytest.mark.parametrize("length", ["9" * 400, "1" + "0" * 16, "-5"], ids=["digits", "days", "negative"])
def test_a_time_that_cannot_be_is_absent(length: str) -> None:
    """More than a day, or less than nothing, is no time of a kernel."""
    table = _read(_long(("0", GEMM, DURATION, "ns", length), ("0", GEMM, OCCUPANCY, "%", "50")))
    assert (None, 0.5) == (table.kernels[0].seconds, table.mean("occupancy"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_long(), "a table without kernels; profile at least one kernel"),
        (_long(("0", GEMM, "unknown metric", "", "5")), "a table without known metrics; profile with ncu --set full"),
    ],
)
def test_tables_without_use_are_refused_in_one_line(text: str, message: str) -> None:
    """A table that says nothing is named for it."""
    with pytest.raises(UserError, match=message):
        _read(text)


def test_cut_gzip_keeps_the_kernels_before_the_cut() -> None:
    """What is there is read, with a note."""
    packed = gzip.compress(_long(*[(str(i), GEMM, DURATION, "ns", str(i + 1)) for i in range(5000)]).encode())
    table = ncu.read(BytesIO(packed[: len(packed) // 2]), "t.csv.gz")
    assert 0 < len(table.kernels) < 5000
    assert ["the gzip data ends early: later kernels are missing"] == table.notes


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b'"ID","Process ID","Kernel Name","x"\n', True),
        (b'noise\n==PROF== x\n"ID","Kernel Name"\n', True),
        (b'"ID","Name"\n"1","Kernel Name"\n', False),
        (b"id,kernel\n", False),
    ],
)
def test_tables_are_known_by_their_header(head: bytes, expected: bool) -> None:
    """The header may come after the profiled program's own output."""
    assert expected == ncu.looks_like(head)


def test_damaged_table_keeps_the_kernels_before_the_damage() -> None:
    """A stray carriage return ends the reading, with a note; the kernel before it may lack metrics and is dropped too."""
    rows = [(str(i), GEMM, DURATION, "ns", "10") for i in range(4)]
    table = _read(_long(*rows).replace('"2","7"', '"2\r","7"', 1).replace('"2\r"', "2\r x"))
    assert 1 == len(table.kernels)
    assert ["the table is damaged"] == [note.partition(" (")[0] for note in table.notes]


def test_shares_that_cannot_be_are_left_out_and_counted() -> None:
    """Below nothing or far above all is no share of peak; a little above is all."""
    rows = [
        ("0", GEMM, DURATION, "ns", "10"),
        ("0", GEMM, OCCUPANCY, "%", "5000"),
        ("0", GEMM, SM, "%", "-3"),
        ("0", GEMM, "DRAM Throughput", "%", "101"),
    ]
    table = _read(_long(*rows))
    assert (None, None, 1.0) == (table.kernels[0].occupancy, table.kernels[0].sm, table.kernels[0].dram)
    assert ["2 shares of peak below 0 or far above 1 were left out"] == table.notes
