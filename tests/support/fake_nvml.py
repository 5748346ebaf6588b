"""An NVML that follows a scenario: what pynvml answers for cards that cannot be had here, in the way that real cards were seen to."""

# ruff: noqa: N802, N815  # the functions and constants have the library's own names
from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 1, 2, 3, 4, 6
DRIVER_NOT_LOADED, TIMEOUT, LIBRARY_NOT_FOUND, GPU_IS_LOST, VERSION_MISMATCH, UNKNOWN = 9, 10, 12, 15, 18, 999
GPM_NAMES = {
    1: "gract", 2: "smutil", 3: "smocc", 4: "intutil", 5: "mmaact", 10: "dram", 11: "fp64", 12: "fp32", 13: "fp16",
    20: "pcitx", 21: "pcirx", 60: "nvlrx", 61: "nvltx",
}  # fmt: skip
LAST_GPM_ID = 209  # ids up to here answer success on an H200, even those that name no metric


class NVMLError(Exception):
    """An error with NVML's return code as `value`."""

    def __init__(self, value: int) -> None:
        """Keep the code."""
        super().__init__(f"NVML code {value}")
        self.value = value


class FakeClock:
    """A clock that moves only when told to, or when someone waits."""

    def __init__(self, t: float = 1000.0) -> None:
        """Start at `t`."""
        self.t = t
        self.waits: list[float] = []

    def __call__(self) -> float:
        """Return the time."""
        return self.t

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.waits.append(seconds)
        self.t += seconds


class Gate:
    """Holds a call until it is opened, and says when a call stands before it."""

    def __init__(self) -> None:
        """Be shut."""
        self.reached, self._opened = threading.Event(), threading.Event()

    def hold(self) -> None:
        """Wait until the gate is opened."""
        self.reached.set()
        self._opened.wait()

    def open(self) -> None:
        """Let every call through."""
        self._opened.set()


def h200(uuid: str = "GPU-a", links: int = 0) -> FakeGpu:
    """Return an idle H200 as shared probes saw it, with `links` NVLinks."""
    gpu = FakeGpu(uuid)
    if links:
        gpu.values.update({("nvmlDeviceGetNvLinkState", link): 1 for link in range(links)})
        gpu.fields.update({(164, link): 26562 for link in range(links)} | {(f, link): 0 for f in (161, 162, 163) for link in range(links)})
    return gpu


class FakeGpu:
    """One card. `values` maps a function, or (function, arguments...), to its answer; what is not there is "not supported"."""

    def __init__(self, uuid: str) -> None:
        """Be an idle one-GPU H200."""
        self.uuid = uuid
        self.lost = False
        self.mig: dict[int, tuple[int, int]] = {}  # position to GPU instance and compute instance
        self.errors: dict[str, int] = {}
        self.rates: dict[int, float] = dict.fromkeys(GPM_NAMES, 0.0)  # percent or MiB/s
        self.nan: set[int] = set()
        self.no_gpm_id: set[int] = set()
        self.gpm = 1
        self.events: list[tuple[int, int]] = []  # type (8: XID) and code
        self.fields: dict[Any, float] = {82: 35, 74: 0, 269: 0, 270: 0, 271: 0, 230: 0}
        self.sums: dict[int, float] = dict.fromkeys(GPM_NAMES, 0.0)
        self.t: float | None = None
        self.values: dict[Any, Any] = {
            "nvmlDeviceGetUUID": uuid,
            "nvmlDeviceGetName": "NVIDIA H200",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=150754820096, reserved=644939776, used=0, free=150109880320),
            "nvmlDeviceGetMemoryBusWidth": 6016,
            ("nvmlDeviceGetMaxClockInfo", 1): 1980,
            ("nvmlDeviceGetMaxClockInfo", 2): 3201,
            ("nvmlDeviceGetClockInfo", 1): 345,
            ("nvmlDeviceGetClockInfo", 2): 3201,
            "nvmlDeviceGetEnforcedPowerLimit": 700000,
            "nvmlDeviceGetMaxPcieLinkGeneration": 5,
            "nvmlDeviceGetMaxPcieLinkWidth": 16,
            "nvmlDeviceGetNumGpuCores": 16896,
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetCudaComputeCapability": (9, 0),
            "nvmlDeviceGetSerial": b"1650123456789",
            "nvmlDeviceGetVbiosVersion": "96.00.B9.00.01",
            "nvmlDeviceGetTemperatureThreshold": 89,
            "nvmlDeviceGetCpuAffinity": [0xFFFF],
            "nvmlDeviceGetPciInfo": SimpleNamespace(busId=b"00000000:4B:00.0"),
            "nvmlDeviceGetPowerUsage": 105792,
            "nvmlDeviceGetCurrentClocksEventReasons": 1,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=0, memory=0),
            "nvmlDeviceGetTemperature": 35,
            "nvmlDeviceGetTotalEnergyConsumption": 2430146,
            "nvmlDeviceGetCurrPcieLinkGeneration": 5,
            "nvmlDeviceGetCurrPcieLinkWidth": 16,
            "nvmlDeviceGetPcieReplayCounter": 0,
            "nvmlDeviceGetTotalEccErrors": 0,
            "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
            "nvmlDeviceGetComputeRunningProcesses": [],
            "nvmlDeviceGetProcessUtilization": NOT_FOUND_WHEN_IDLE,
            "nvmlDeviceGetSupportedEventTypes": 0x1F,
        }

    def settle(self, now: float) -> None:
        """Bring the sums of GPM up to `now`."""
        if self.t is not None:
            for metric, rate in self.rates.items():
                self.sums[metric] += rate * (now - self.t)
        self.t = now


class _Idle:
    """The answer of a call that has no data."""


NOT_FOUND_WHEN_IDLE = _Idle()


class FakeNvml:
    """The module. `errors` fails a function on every GPU, `block` makes one wait at a gate, `calls` lists what was called."""

    NVMLError = NVMLError
    NVML_GPM_METRICS_GET_VERSION = 1
    nvmlMemory_v2 = 2

    def __init__(self, gpus: list[FakeGpu], clock: FakeClock) -> None:
        """Have `gpus`; GPM integrates over the time of `clock`."""
        self.gpus, self.clock = gpus, clock
        self.errors: dict[str, int] = {}
        self.block: dict[str, Gate] = {}
        self.calls: list[str] = []
        self.init_count = 0
        self.generation = 0
        self.samples: set[int] = set()
        self.event_sets: set[int] = set()
        self._made = 0

    def reload_driver(self) -> None:
        """Take the driver away and bring it back: every handle is void until the next nvmlInit."""
        self.generation += 1
        self.init_count = 0
        for gpu in self.gpus:
            gpu.sums = dict.fromkeys(GPM_NAMES, 0.0)

    def nvmlInit(self) -> None:
        """Initialise."""
        self._enter("nvmlInit", initialised=True)
        self.init_count += 1

    def nvmlShutdown(self) -> None:
        """Shut down."""
        self._enter("nvmlShutdown")
        self.init_count -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        """Return the driver's version."""
        self._enter("nvmlSystemGetDriverVersion")
        return "580.159.04"

    def nvmlSystemGetNVMLVersion(self) -> str:
        """Return the library's version."""
        self._enter("nvmlSystemGetNVMLVersion")
        return "13.580.159.04"

    def nvmlDeviceGetCount(self) -> int:
        """Return the number of GPUs."""
        self._enter("nvmlDeviceGetCount")
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        """Return a handle."""
        return self._handle("nvmlDeviceGetHandleByIndex", self.gpus[index])

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:
        """Return a handle."""
        gpu = next((g for g in self.gpus if g.uuid == uuid), None)
        if gpu is None:
            raise NVMLError(NOT_FOUND)
        return self._handle("nvmlDeviceGetHandleByUUID", gpu)

    def nvmlDeviceGetFieldValues(self, handle: Any, fields: tuple[Any, ...]) -> list[Any]:
        """Return field values, each with its own return code."""
        gpu = self._on("nvmlDeviceGetFieldValues", handle)
        return [
            SimpleNamespace(
                fieldId=f,
                nvmlReturn=0 if f in gpu.fields else NOT_SUPPORTED,
                valueType=3,
                value=SimpleNamespace(ullVal=gpu.fields.get(f, 0)),
            )
            for f in fields
        ]

    def nvmlGpmQueryDeviceSupport(self, handle: Any) -> Any:
        """Say whether the card has GPM."""
        return SimpleNamespace(isSupportedDevice=self._on("nvmlGpmQueryDeviceSupport", handle).gpm)

    def nvmlGpmSampleAlloc(self) -> Any:
        """Return an empty sample."""
        self._enter("nvmlGpmSampleAlloc")
        self._made += 1
        self.samples.add(self._made)
        return SimpleNamespace(id=self._made, t=0.0, sums={}, gpu=None)

    def nvmlGpmSampleFree(self, sample: Any) -> None:
        """Free a sample, once."""
        self._enter("nvmlGpmSampleFree")
        self.samples.remove(sample.id)

    def nvmlGpmSampleGet(self, handle: Any, sample: Any) -> None:
        """Take a sample."""
        gpu = self._on("nvmlGpmSampleGet", handle)
        gpu.settle(self.clock())
        sample.t, sample.sums, sample.gpu = self.clock(), dict(gpu.sums), gpu

    def nvmlGpmMigSampleGet(self, handle: Any, instance: int, sample: Any) -> None:
        """Take a sample of a MIG instance: half of the board's rates, so that the two cannot be taken for each other."""
        gpu = self._on("nvmlGpmMigSampleGet", handle)
        if instance not in {gi for gi, _ in gpu.mig.values()}:
            raise NVMLError(NOT_FOUND)
        gpu.settle(self.clock())
        sample.t, sample.sums, sample.gpu = self.clock(), {metric: total / 2 for metric, total in gpu.sums.items()}, gpu

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, position: int) -> Any:
        """Return the handle of a MIG device; positions have holes."""
        gpu = self._on("nvmlDeviceGetMigDeviceHandleByIndex", handle)
        if position not in gpu.mig:
            raise NVMLError(NOT_FOUND)
        instance, compute = gpu.mig[position]
        device = FakeGpu(f"MIG-{instance}-{compute}")
        device.values |= {
            "nvmlDeviceGetGpuInstanceId": instance,
            "nvmlDeviceGetComputeInstanceId": compute,
            "nvmlDeviceGetName": "NVIDIA H200 MIG 3g.71gb",
            "nvmlDeviceGetAttributes": SimpleNamespace(gpuInstanceSliceCount=3),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=70 * 2**30, reserved=0, used=2**30 * (instance + 1), free=0),
        }
        return SimpleNamespace(gpu=device, generation=self.generation, mig=True)

    def c_nvmlGpmMetricsGet_t(self) -> Any:
        """Return the request structure."""
        slots = [SimpleNamespace(metricId=0, nvmlReturn=0, value=0.0, metricInfo=SimpleNamespace(shortName=None)) for _ in range(333)]
        return SimpleNamespace(version=0, numMetrics=0, sample1=None, sample2=None, metrics=slots)

    def nvmlGpmMetricsGet(self, request: Any) -> Any:
        """Fill in the averages between two samples; an id that names no metric answers success, 0 and no name."""
        self._enter("nvmlGpmMetricsGet")
        one, two = request.sample1, request.sample2
        for slot in request.metrics[: request.numMetrics]:
            metric = slot.metricId
            named = metric in GPM_NAMES and metric not in two.gpu.no_gpm_id
            slot.nvmlReturn = 0 if metric <= LAST_GPM_ID else INVALID_ARGUMENT
            slot.metricInfo.shortName = GPM_NAMES[metric].encode() if named else None
            mean = (two.sums.get(metric, 0.0) - one.sums.get(metric, 0.0)) / (two.t - one.t) if two.t > one.t else float("nan")
            slot.value = float("nan") if metric in two.gpu.nan else mean if named else 0.0
        return request

    def nvmlEventSetCreate(self) -> Any:
        """Return an event set."""
        self._enter("nvmlEventSetCreate")
        self._made += 1
        self.event_sets.add(self._made)
        return SimpleNamespace(id=self._made, gpu=None)

    def nvmlEventSetFree(self, events: Any) -> None:
        """Free an event set, once."""
        self._enter("nvmlEventSetFree")
        self.event_sets.remove(events.id)

    def nvmlDeviceRegisterEvents(self, handle: Any, types: int, events: Any) -> None:
        """Register for events."""
        events.gpu = self._on("nvmlDeviceRegisterEvents", handle)

    def nvmlEventSetWait_v2(self, events: Any, milliseconds: int) -> Any:
        """Return the next event or time out at once."""
        self._enter("nvmlEventSetWait_v2")
        if events.id not in self.event_sets:
            raise AssertionError("an event set was used after it was freed")
        if not events.gpu.events:
            raise NVMLError(TIMEOUT)
        event_type, code = events.gpu.events.pop(0)
        return SimpleNamespace(eventType=event_type, eventData=code)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a plain getter of the scenario's values."""
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)

        def getter(handle: Any, *args: Any, **kwargs: Any) -> Any:
            gpu = self._on(name, handle)
            answer = gpu.values.get((name, *args), gpu.values.get(name))
            if answer is None:
                raise NVMLError(NOT_SUPPORTED)
            if answer is NOT_FOUND_WHEN_IDLE:
                raise NVMLError(NOT_FOUND)
            return answer

        return getter

    def _handle(self, function: str, gpu: FakeGpu) -> Any:
        handle = SimpleNamespace(gpu=gpu, generation=self.generation)
        self._on(function, handle)
        return handle

    def _on(self, function: str, handle: Any) -> FakeGpu:
        self._enter(function)
        if handle.generation != self.generation:
            raise NVMLError(INVALID_ARGUMENT)
        gpu: FakeGpu = handle.gpu
        if gpu.lost or (gpu not in self.gpus and not hasattr(handle, "mig")):
            raise NVMLError(GPU_IS_LOST)
        if function in gpu.errors:
            raise NVMLError(gpu.errors[function])
        return gpu

    def _enter(self, function: str, initialised: bool = False) -> None:
        self.calls.append(function)
        if function in self.block:
            self.block[function].hold()
        if function in self.errors:
            raise NVMLError(self.errors[function])
        if not initialised and self.init_count < 1:
            raise NVMLError(UNINITIALIZED)
