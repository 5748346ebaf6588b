"""Numbers for people."""

from __future__ import annotations

import pytest

from heptascope.signals.schema import SCHEMA
from heptascope.surfaces import units


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.5214, "ratio", "52.1 %"),
        (0.0, "ratio", "0 %"),
        (0.00001, "ratio", "<0.01 %"),
        (1.0, "ratio", "100 %"),
        (0.00803, "seconds", "8.03 ms"),
        (1e-5, "seconds", "10 µs"),
        (0.0, "seconds", "0 s"),
        (47.3, "seconds", "47.3 s"),
        (300.0, "seconds", "5 min"),
        (10_800.0, "seconds", "3 h"),
        (864_000.0, "seconds", "10 d"),
        (150_754_820_096.0, "bytes", "140 GiB"),
        (512.0, "bytes", "512 B"),
        (598.23, "watts", "598 W"),
        (187_000.0, "joules", "187 kJ"),
        (1.971e9, "hertz", "1.97 GHz"),
        (55.0, "celsius", "55 °C"),
        (487_232.0, "tokens", "487,232 tokens"),
        (2.508e12, "B/s", "2.51 TB/s"),
        (62.0, "", "62"),
        (2.68, "", "2.68"),
        (12_345_678.0, "", "12.3 M"),
        (-0.25, "", "-0.25"),
        (float("inf"), "bytes", "inf"),
    ],
)
def test_text(value: float, unit: str, expected: str) -> None:
    """Each base unit is shown in the size that people use, with three digits at most."""
    assert expected == units.text(value, unit)


@pytest.mark.parametrize(
    ("per_second", "unit", "expected"),
    [
        (0.32, "seconds", "32 %"),
        (598.2, "joules", "598 W"),
        (8.28e7, "bytes", "82.8 MB/s"),
        (7957.0, "tokens", "7,957 tokens/s"),
        (15.5, "", "15.5/s"),
    ],
)
def test_rate_text(per_second: float, unit: str, expected: str) -> None:
    """A counter of seconds runs at a share of time, one of joules at watts."""
    assert expected == units.rate_text(per_second, unit)


def test_unit_inside_a_name() -> None:
    """A per-second name carries its unit itself; the table's unit comes first."""
    assert "FLOP/s" == units.unit_of("heptascope_gpu_tensor_throughput_flops_per_second", "")
    assert "seconds" == units.unit_of("heptascope_engine_step_seconds", "seconds")
    assert "" == units.unit_of("heptascope_engine_requests_running", "")


def test_every_unit_of_the_table_has_a_text() -> None:
    """No signal's unit falls through to its bare base unit, apart from counted things."""
    spelled = {unit for unit in {row.unit for row in SCHEMA.values()} if unit and unit in units.text(1.0, unit)}
    assert {"tokens"} == spelled
