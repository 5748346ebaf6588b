"""Facts that are read once, and what single calls may answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heptascope.model import Reason
from heptascope.sources.gpu.calls import Calls, Gpu, GpuLostError, SessionLostError
from heptascope.sources.gpu.identity import compact, describe
from support.fake_nvml import DRIVER_NOT_LOADED, GPU_IS_LOST, NO_PERMISSION, NOT_FOUND, NOT_SUPPORTED, UNKNOWN, FakeClock, FakeNvml, h200


def _calls(links: int = 0) -> tuple[Calls, Any, FakeNvml]:
    card = h200(links=links)
    nvml = FakeNvml([card], FakeClock())
    nvml.nvmlInit()
    return Calls(nvml, Gpu(0, card.uuid, nvml.nvmlDeviceGetHandleByIndex(0))), card, nvml


@pytest.mark.parametrize(
    ("numbers", "text"), [([], ""), ([3], "3"), ([0, 1, 2, 3], "0-3"), ([0, 2, 3, 64, 65, 66], "0,2-3,64-66"), ([5, 4], "4-5")]
)
def test_cpu_lists_are_compact(numbers: list[int], text: str) -> None:
    """CPUs are written as Linux does."""
    assert compact(numbers) == text


def test_describe_an_h200(tmp_path: Path) -> None:
    """Every fact of the header, the NUMA node from the PCI device's file in sysfs."""
    device = tmp_path / "bus/pci/devices/0000:4b:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("1\n")
    call, _, _ = _calls(links=18)
    assert describe(call, tmp_path) == {
        "gpu": 0, "uuid": "GPU-a", "name": "NVIDIA H200", "mem_total": 150754820096, "bus_width_bits": 6016, "max_sm_mhz": 1980,
        "max_mem_mhz": 3201, "power_limit_w": 700.0, "pcie_gen_max": 5, "pcie_width_max": 16, "num_cores": 16896, "mig_mode": 0,
        "compute_capability": [9, 0], "serial": "1650123456789", "vbios": "96.00.B9.00.01", "temp_slowdown_c": 89, "cpus": "0-15",
        "pci_bus_id": "0000:4b:00.0", "numa_node": 1, "nvlinks": 18,
        "throttle_ns": ["power_cap", "software_thermal", "hardware_thermal", "power_brake"],
    }  # fmt: skip


@pytest.mark.parametrize(("links", "up", "count"), [(18, 17, 17), (36, 36, 36), (18, 0, 0), (0, 0, 0)])
def test_nvlinks_that_are_up(tmp_path: Path, links: int, up: int, count: int) -> None:
    """Only links that are up count: a card whose bridge is not plugged in has none."""
    call, card, _ = _calls(links)
    card.values.update({("nvmlDeviceGetNvLinkState", link): 0 for link in range(up, links)})
    assert describe(call, tmp_path)["nvlinks"] == count


@pytest.mark.parametrize("text", ["-1\n", "none\n", None])
def test_no_numa_node(tmp_path: Path, text: str | None) -> None:
    """A machine with one node says -1 or nothing: no label."""
    if text is not None:
        device = tmp_path / "bus/pci/devices/0000:4b:00.0"
        device.mkdir(parents=True)
        (device / "numa_node").write_text(text)
    assert describe(_calls()[0], tmp_path)["numa_node"] is None


def test_cpus_beyond_the_first_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The affinity mask has a 64-bit word for each 64 CPUs of the machine."""
    monkeypatch.setattr("os.sysconf", {"SC_NPROCESSORS_CONF": 96}.__getitem__)
    call, card, _ = _calls()
    card.values["nvmlDeviceGetCpuAffinity"] = [0, 0xFFFF]
    assert describe(call, tmp_path)["cpus"] == "64-79"


def test_facts_that_a_card_refuses(tmp_path: Path) -> None:
    """What a card does not give is null, with the reason beside it."""
    call, card, _ = _calls()
    card.errors["nvmlDeviceGetMaxClockInfo"] = NOT_SUPPORTED
    card.errors["nvmlDeviceGetEnforcedPowerLimit"] = NO_PERMISSION
    card.fields.clear()
    entry = describe(call, tmp_path)
    assert (entry["max_sm_mhz"], entry["power_limit_w"], entry["throttle_ns"]) == (None, None, [])
    assert {key: why[0] for key, why in entry["missing"].items()} == {
        "max_sm_mhz": "not_supported",
        "max_mem_mhz": "not_supported",
        "power_limit_w": "no_permission",
    }


def test_an_old_driver_without_memory_v2(tmp_path: Path) -> None:
    """Where version 2 of the memory call is refused, version 1 answers."""
    call, _, nvml = _calls()
    real = nvml.nvmlDeviceGetMemoryInfo

    def old(handle: Any, version: int | None = None) -> Any:
        if version:
            raise nvml.NVMLError(NOT_SUPPORTED)
        return real(handle)

    nvml.nvmlDeviceGetMemoryInfo = old  # type: ignore[method-assign]  # the fake is changed on purpose
    entry = describe(call, tmp_path)
    assert entry["mem_total"] == 150754820096
    assert "missing" not in entry


@pytest.mark.parametrize(
    ("code", "reason", "tries"),
    [
        (NOT_SUPPORTED, Reason.NOT_SUPPORTED, 1),
        (NO_PERMISSION, Reason.NO_PERMISSION, 1),
        (UNKNOWN, Reason.SOURCE_DOWN, 2),
        (NOT_FOUND, Reason.IDLE, 2),
    ],
)
def test_final_refusals_are_not_repeated(code: int, reason: Reason, tries: int) -> None:
    """What will never work is called once for each GPU; what may pass is tried again."""
    call, card, nvml = _calls()
    card.errors["nvmlDeviceGetPowerUsage"] = code
    for _ in range(2):
        assert call.get("power_w", "nvmlDeviceGetPowerUsage") is None
        assert call.missing["power_w"][0] == reason
    assert nvml.calls.count("nvmlDeviceGetPowerUsage") == tries


def test_refusals_are_told_apart_by_arguments() -> None:
    """One clock that is refused does not refuse the other."""
    call, card, _ = _calls()
    del card.values["nvmlDeviceGetClockInfo", 1]
    assert [call.get("sm_mhz", "nvmlDeviceGetClockInfo", 1), call.get("mem_mhz", "nvmlDeviceGetClockInfo", 2)] == [None, 3201]


def test_a_function_that_the_module_lacks() -> None:
    """An older nvidia-ml-py without a function is a refusal that names it."""
    call, _, _ = _calls()
    assert call.get("x", "nvmlNewFunction") is None
    assert call.missing["x"] == ["not_supported", "this nvidia-ml-py has no nvmlNewFunction"]


def test_each_field_fails_for_itself() -> None:
    """One field that is not supported leaves the others, and is not asked again."""
    call, card, nvml = _calls()
    del card.fields[269]
    asked: list[Any] = []
    real = nvml.nvmlDeviceGetFieldValues
    nvml.nvmlDeviceGetFieldValues = lambda handle, ids: (asked.append(ids), real(handle, ids))[1]  # type: ignore[method-assign]  # on purpose
    wanted = {"power_cap_ns": 74, "sw_thermal_ns": 269}
    assert [call.fields(wanted), call.fields(wanted)] == [{"power_cap_ns": 0, "sw_thermal_ns": None}] * 2
    assert asked == [(74, 269), (74,)]


def test_a_failed_batch_of_fields() -> None:
    """Where the call as a whole fails each field has its reason."""
    call, card, _ = _calls()
    card.errors["nvmlDeviceGetFieldValues"] = UNKNOWN
    assert call.fields({"mem_temp_c": 82}) == {"mem_temp_c": None}
    assert call.missing["mem_temp_c"][0] == Reason.SOURCE_DOWN


@pytest.mark.parametrize(("value_type", "member", "value"), [(0, "dVal", 1.5), (1, "uiVal", 7), (3, "ullVal", 2**40), (5, "siVal", -3)])
def test_field_values_by_type(value_type: int, member: str, value: float) -> None:
    """The member of the union follows the value's type."""
    call, _, nvml = _calls()
    found = SimpleNamespace(nvmlReturn=0, valueType=value_type, value=SimpleNamespace(**{member: value}))
    nvml.nvmlDeviceGetFieldValues = lambda *_: [found]  # type: ignore[method-assign]  # the fake is changed on purpose
    assert call.fields({"x": 1}) == {"x": value}


@pytest.mark.parametrize(("code", "error"), [(GPU_IS_LOST, GpuLostError), (DRIVER_NOT_LOADED, SessionLostError)])
def test_errors_that_end_more_than_a_value(code: int, error: type[Exception]) -> None:
    """A lost GPU and a driver that went away are no missing values."""
    call, card, _ = _calls()
    card.errors["nvmlDeviceGetPowerUsage"] = code
    with pytest.raises(error):
        call.get("power_w", "nvmlDeviceGetPowerUsage")
