"""The NVML session: opening, losing and finding the driver again."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import pytest

from heptascope.model import Reason
from heptascope.sources.base import SourceError
from heptascope.sources.gpu import session as session_module
from heptascope.sources.gpu.backoff import Backoff
from heptascope.sources.gpu.nvml import NvmlSource
from heptascope.sources.gpu.session import Session
from support.fake_nvml import (
    DRIVER_NOT_LOADED,
    LIBRARY_NOT_FOUND,
    NO_PERMISSION,
    UNKNOWN,
    VERSION_MISMATCH,
    FakeClock,
    Gate,
    h200,
)
from support.gpu_bench import Bench
from support.gpu_rows import reasons, value, values


@pytest.mark.parametrize(
    ("code", "reason", "words"),
    [
        (LIBRARY_NOT_FOUND, Reason.NOT_SUPPORTED, "driver capability `utility`"),
        (DRIVER_NOT_LOADED, Reason.SOURCE_DOWN, "driver is not loaded"),
        (VERSION_MISMATCH, Reason.SOURCE_DOWN, "restart the container"),
        (NO_PERMISSION, Reason.NO_PERMISSION, "/dev/nvidiactl"),
        (UNKNOWN, Reason.SOURCE_DOWN, "NVML cannot be initialised: NVML code 999"),
    ],
)
def test_nvml_cannot_be_opened(code: int, reason: Reason, words: str) -> None:
    """Each way in which NVML does not open is one line with what to do, and both sources say it."""
    bench = Bench()
    bench.nvml.errors["nvmlInit"] = code
    for read in (bench.read, lambda: bench.slow.read(1.0)):
        with pytest.raises(SourceError, match=words) as caught:
            read()
        assert caught.value.reason == reason


def test_nvml_comes_later() -> None:
    """A driver that is loaded after the start is found; until the next try is due NVML is not asked."""
    bench = Bench()
    bench.nvml.errors["nvmlInit"] = DRIVER_NOT_LOADED
    for seconds in (0.0, 0.5):
        with pytest.raises(SourceError):
            bench.read(seconds)
    assert bench.nvml.calls.count("nvmlInit") == 1
    bench.nvml.errors.clear()
    assert value(bench.read(0.6), "up") == 1.0


def test_a_module_that_is_not_nvidia_ml_py(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deprecated package of the name pynvml is recognised by its missing GPM and named."""
    monkeypatch.setitem(sys.modules, "pynvml", SimpleNamespace(__file__="/lib/pynvml.py", NVMLError=Exception))
    source = NvmlSource(Session())
    with pytest.raises(SourceError, match=r"/lib/pynvml\.py is not a current nvidia-ml-py .*pip uninstall pynvml") as caught:
        source.read(1.0)
    assert caught.value.reason == Reason.NOT_SUPPORTED


def test_no_module_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the module the message says what to install."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(SourceError, match="pip install nvidia-ml-py"):
        NvmlSource(Session()).read(1.0)


def test_the_real_module_is_accepted() -> None:
    """The installed nvidia-ml-py passes the check; without a card here it says that the library is missing."""
    with pytest.raises(SourceError, match="libnvidia-ml") as caught:
        NvmlSource(Session()).read(1.0)
    assert caught.value.reason == Reason.NOT_SUPPORTED


def test_a_driver_reload() -> None:
    """When the driver goes away the source is down; it opens NVML again, and counters go on by uuid."""
    card = h200()
    bench = Bench(card)
    card.rates[21] = 1.0
    bench.read()
    before = value(bench.read(), "pcie_receive_bytes_total")
    bench.nvml.reload_driver()
    with pytest.raises(SourceError, match="will be opened again") as caught:
        bench.read()
    assert caught.value.reason == Reason.SOURCE_DOWN
    again = bench.read()
    assert value(again, "up") == 1.0
    assert value(again, "pcie_receive_bytes_total") >= before
    assert value(bench.read(), "pcie_receive_bytes_total") == pytest.approx(value(again, "pcie_receive_bytes_total") + 2**20)
    assert bench.nvml.init_count == 1


def test_a_reload_frees_what_belonged_to_the_old_session() -> None:
    """Samples and event sets of the old session are given back before NVML is shut down, none is used after."""
    bench = Bench()
    bench.read()
    bench.nvml.errors["nvmlDeviceGetPowerUsage"] = DRIVER_NOT_LOADED
    with pytest.raises(SourceError):
        bench.read()
    bench.nvml.errors.clear()
    bench.read()
    assert (len(bench.nvml.samples), len(bench.nvml.event_sets), bench.nvml.init_count) == (2, 1, 1)


def test_indexes_may_change_in_a_reload() -> None:
    """A GPU is known by its uuid: with another index after a reload it keeps its counters."""
    first, second = h200("GPU-a"), h200("GPU-b")
    bench = Bench(first, second)
    second.rates[21] = 1.0
    bench.read()
    before = value(bench.read(), "pcie_receive_bytes_total", uuid="GPU-b")
    bench.nvml.gpus = [second]
    bench.nvml.reload_driver()
    with pytest.raises(SourceError):
        bench.read()
    reading = bench.read()
    assert value(reading, "pcie_receive_bytes_total", uuid="GPU-b", gpu="0") > before
    assert value(reading, "up", uuid="GPU-a") == 0.0


def test_the_driver_goes_away_while_it_is_listed() -> None:
    """A driver that is unloaded between two calls of the opening is no lost GPU: the whole session failed."""
    bench = Bench()
    bench.nvml.errors["nvmlDeviceGetUUID"] = DRIVER_NOT_LOADED
    with pytest.raises(SourceError, match="cannot list the GPUs"):
        bench.read()
    assert bench.nvml.init_count == 0


def test_the_driver_goes_away_while_a_gpu_is_lost() -> None:
    """A driver that is unloaded ends the session also where only a lost GPU is asked for."""
    card = h200()
    bench = Bench(card)
    bench.read()
    card.lost = True
    bench.read()
    bench.nvml.errors["nvmlDeviceGetHandleByUUID"] = DRIVER_NOT_LOADED
    with pytest.raises(SourceError, match="opened again"):
        bench.read(2.0)


def test_a_driver_without_version() -> None:
    """A driver that does not tell its version leaves that label out."""
    bench = Bench()
    bench.nvml.errors["nvmlSystemGetDriverVersion"] = UNKNOWN
    bench.read()
    (pairs,) = values(bench.slow.read(bench.clock()), "info")
    assert "driver" not in dict(pairs)


def test_one_gpu_cannot_be_opened() -> None:
    """A GPU that is broken from the start is `up` 0; it appears in full once it can be opened."""
    bad = h200("GPU-b")
    bad.lost = True
    bench = Bench(h200("GPU-a"), bad)
    reading = bench.read()
    assert values(reading, "up") == {(("gpu", "0"), ("uuid", "GPU-a")): 1.0, (("gpu", "1"),): 0.0}
    bad.lost = False
    assert value(bench.read(2.0), "up", uuid="GPU-b") == 1.0


def test_a_gpu_of_another_container() -> None:
    """A GPU that this container may not open has no series, but a reason."""
    hidden = h200("GPU-b")
    hidden.errors["nvmlDeviceGetHandleByIndex"] = NO_PERMISSION
    reading = Bench(h200("GPU-a"), hidden).read()
    assert set(values(reading, "up")) == {(("gpu", "0"), ("uuid", "GPU-a"))}
    assert [m[1:] for m in reasons(reading, "up")] == [(Reason.NO_PERMISSION, "GPU 1 is not given to this container", (("gpu", "1"),))]


def test_only_gpus_of_other_containers() -> None:
    """If no GPU may be opened the source is down for want of permission."""
    hidden = h200()
    hidden.errors["nvmlDeviceGetHandleByIndex"] = NO_PERMISSION
    with pytest.raises(SourceError) as caught:
        Bench(hidden).read()
    assert caught.value.reason == Reason.NO_PERMISSION


@pytest.mark.parametrize("devices", [("1",), ("GPU-b",)])
def test_chosen_devices(devices: tuple[str, ...]) -> None:
    """GPUs are chosen by index or by uuid; the others are not touched."""
    bench = Bench(h200("GPU-a"), h200("GPU-b"), devices=devices)
    assert set(values(bench.read(), "up")) == {(("gpu", "1"), ("uuid", "GPU-b"))}


def test_a_chosen_device_that_is_not_there() -> None:
    """One of two chosen GPUs is missing: the other goes on, and the missing one has a reason with what is there."""
    reading = Bench(h200("GPU-a"), devices=("0", "7", "GPU-q")).read()
    assert [(m.reason, m.labels) for m in reasons(reading, "up")] == [
        (Reason.NO_SOURCE, (("gpu", "7"),)),
        (Reason.NO_SOURCE, (("uuid", "GPU-q"),)),
    ]


def test_no_chosen_device_is_there() -> None:
    """If none of the chosen GPUs is there the source is down, with a line that names what is there; NVML is not left open."""
    bench = Bench(h200("GPU-a"), devices=("7",))
    with pytest.raises(SourceError, match=r"none of the GPUs asked for \(7\) is there; this process sees: 0 \(GPU-a\)") as caught:
        bench.read()
    assert caught.value.reason == Reason.NO_SOURCE
    assert bench.nvml.init_count == 0


def test_a_machine_without_gpus() -> None:
    """A driver without a card is no source."""
    bench = Bench()
    bench.nvml.gpus = []
    with pytest.raises(SourceError, match="NVML shows no GPU"):
        bench.read()


def test_the_list_of_gpus_fails() -> None:
    """An error while listing GPUs is one line, and NVML is not left open."""
    bench = Bench()
    bench.nvml.errors["nvmlDeviceGetCount"] = UNKNOWN
    with pytest.raises(SourceError, match="cannot list the GPUs"):
        bench.read()
    assert bench.nvml.init_count == 0


def test_a_gpu_lost_while_it_is_described() -> None:
    """A GPU that is lost between its handle and its facts is `up` 0, with its uuid."""
    card = h200()
    card.errors["nvmlDeviceGetName"] = 15
    assert values(Bench(card).read(), "up") == {(("gpu", "0"), ("uuid", "GPU-a")): 0.0}


def test_a_hung_call_in_one_source_leaves_the_other() -> None:
    """While a slow read hangs inside NVML the fast source reads on; a lost session is not reopened under the hung call."""
    bench = Bench()
    bench.read()
    gate = bench.nvml.block["nvmlDeviceGetTotalEnergyConsumption"] = Gate()
    thread = threading.Thread(target=bench.slow.read, args=(bench.clock(),), daemon=True)
    thread.start()
    assert gate.reached.wait(5.0)
    assert value(bench.read(), "up") == 1.0
    bench.nvml.errors["nvmlDeviceGetPowerUsage"] = DRIVER_NOT_LOADED
    with pytest.raises(SourceError, match="opened again"):
        bench.read()
    bench.nvml.errors.clear()
    with pytest.raises(SourceError, match="a call still hangs"):
        bench.read()
    gate.open()
    thread.join(5.0)
    assert value(bench.read(), "up") == 1.0


def test_closing_beside_a_hung_call() -> None:
    """NVML is not shut down under a call that hangs in it: the process ends with it."""
    bench = Bench()
    bench.read()
    gate = bench.nvml.block["nvmlDeviceGetTotalEnergyConsumption"] = Gate()
    thread = threading.Thread(target=bench.slow.read, args=(bench.clock(),), daemon=True)
    thread.start()
    assert gate.reached.wait(5.0)
    bench.fast.close()
    bench.session.detach()
    assert bench.nvml.init_count == 1
    gate.open()
    thread.join(5.0)


def test_opening_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one source opens NVML the other waits a little and then says so."""
    monkeypatch.setattr(session_module, "OPEN_WAIT_SECONDS", 0.01)
    bench = Bench()
    gate = bench.nvml.block["nvmlInit"] = Gate()
    thread = threading.Thread(target=bench.read, daemon=True)
    thread.start()
    assert gate.reached.wait(5.0)
    with pytest.raises(SourceError, match="takes long to open"):
        bench.slow.read(1.0)
    gate.open()
    thread.join(5.0)


def test_backoff() -> None:
    """Tries are due at once, then after 1, 2, 4 … and at most 60 s, and at once again after one that worked."""
    clock = FakeClock(0.0)
    backoff = Backoff(clock)
    waits = []
    for _ in range(8):
        backoff.failed()
        start = clock.t
        while not backoff.due:
            clock.t += 0.5
        waits.append(clock.t - start)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    backoff.worked()
    assert backoff.due
