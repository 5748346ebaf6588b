"""Board of layer 1: the card, its clocks and power, its links, its health."""

from __future__ import annotations

from boards import facts
from boards.common import load_panel, resource_limits, state_row, tokens_panel, uid
from boards.limits import Limit, Sign, number
from boards.panel import Board, Panel, Query, Row
from boards.promql import ENGINE_NAME, GPU, GPU_NAME, PLACE, POD_NAME, RANK, by, exact, named, of_model, rate, sel
from boards.variables import PLACES
from heptascope.model import Layer

_G = "heptascope_gpu_"


def _grown(name: str, label: str) -> str:
    """Return by how much a counter grew, where it did."""
    return f"sum by ({by(GPU)}, {label}) (increase({sel(_G + name)}[10m])) > 0"


def _utilisation() -> Row:
    busy = Panel(
        "timeseries",
        "1. Time busy: what nvidia-smi calls utilisation",
        (
            Query(sel(_G + "utilization_ratio"), f"utilisation · {GPU_NAME}"),
            Query(exact(_G + "graphics_engine_active_ratio"), f"any kernel · {GPU_NAME}"),
        ),
        "percentunit",
        shows="Share of time with at least one kernel on the card, however small: one thread that spins reads 100 %.",
        normal="near 100 % under load; it says only that something ran.",
        act="never judge by this panel alone. High here and low in the two beside it: the card waits, spins, or runs small kernels.",
        width=8,
        top=1.0,
    )
    pipes = Panel(
        "timeseries",
        "2. Pipeline busy: SMs and tensor cores",
        (
            Query(exact(_G + "sm_active_ratio"), f"SMs · {GPU_NAME}"),
            Query(exact(_G + "tensor_active_ratio"), f"tensor cores · {GPU_NAME}"),
        ),
        "percentunit",
        shows="Share of SM time with work resident, and share of time in which the tensor pipes issued.",
        normal="SMs 70 % and more under load; tensor cores 60 to 90 % in prefill, a few per cent in decode.",
        act="SMs low while the first panel is high: a collective spins or kernels are tiny; see Parallel and Operator.",
        width=8,
        limits=(Limit("BusyWithoutWork", "sm_active", below=True),),
        top=1.0,
    )
    work = Panel(
        "timeseries",
        "3. Work done: of what the engine can get",
        (Query(of_model(named([(words, _pressure(what)) for what, words in _RESOURCES.items()])), f"{{{{what}}}} · {ENGINE_NAME}"),),
        "percentunit",
        shows="Use of each resource as a share of what real kernels reach, not of the data sheet. The largest is the limiter.",
        normal="decode: DRAM 60 to 100 %; prefill: tensor cores 70 to 100 %.",
        act="all low under load: the hardware is not the limit, so a faster card would not help; look at the layers above.",
        width=8,
        limits=resource_limits("TensorComputeLimit", "DramBandwidthLimit", "PcieTransferLimit"),
        empty="Defined only while requests run, for an engine whose GPUs are known.",
    )
    return Row("Three utilisations: why 95 % can mean nothing", ((busy, pipes, work),))


_RESOURCES = {"dram": "DRAM", "tensor": "tensor cores", "pcie": "PCIe"}


def _pressure(resource: str) -> str:
    return f"max by ({by(RANK)}) ({sel('heptascope_engine_resource_pressure_ratio', resource=resource)})"


def _speed() -> Row:
    throughput = Panel(
        "timeseries",
        "DRAM traffic",
        (
            Query(sel(_G + "dram_throughput_bytes_per_second"), f"{GPU_NAME}"),
            Query(f"max ({sel(_G + 'dram_peak_bytes_per_second')})", "peak of the card", dashed=True),
        ),
        facts.unit(_G + "dram_throughput_bytes_per_second"),
        shows="Bytes that move between the card and its memory, against the peak of the card.",
        normal="decode reaches 60 to 75 % of the peak; more cannot be had with real kernels.",
        act="at that ceiling only fewer bytes help: quantised weights, an FP8 KV cache, or a larger batch for each read of the weights.",
        width=8,
    )
    clock = Panel(
        "timeseries",
        "SM clock, of the card's maximum",
        (Query(f"{sel(_G + 'sm_clock_hertz')} / {sel(_G + 'sm_clock_max_hertz')}", GPU_NAME),),
        "percentunit",
        shows="How fast the card runs, of how fast it can.",
        normal="95 to 100 % in decode; 70 to 80 % in dense prefill, where the power limit holds it. At idle it may rest.",
        act="below the lines under load: compare with power and temperature beside it.",
        width=8,
        limits=(
            Limit("ClockHeldDown", "clock_share", below=True),
            Limit("GpuSlowerThanPeers", "clock_share", below=True),
            Limit("PowerCapLimit", "clock_share", below=True),
        ),
        top=1.0,
    )
    memory_clock = Panel(
        "timeseries",
        "Memory clock, of the card's maximum",
        (Query(f"{sel(_G + 'memory_clock_hertz')} / {sel(_G + 'memory_clock_max_hertz')}", GPU_NAME),),
        "percentunit",
        shows="The clock of the memory; decode is as fast as it is.",
        normal="100 % under load.",
        act="a lock (nvidia-smi -rmc removes it), or heat of the memory.",
        width=8,
        limits=(Limit("MemoryClockLow", "clock_share", below=True),),
        top=1.0,
    )
    return Row("Speed", ((throughput, clock, memory_clock),))


def _power() -> Row:
    power = Panel(
        "timeseries",
        "Power, of the limit",
        (Query(f"{sel(_G + 'power_watts')} / {sel(_G + 'power_limit_watts')}", GPU_NAME),),
        "percentunit",
        shows="Power draw as a share of the limit in force.",
        normal="45 to 100 % under load; at 100 % the card lowers its clock to stay there.",
        act="at 100 % with a lowered limit: raise it. Low while busy: the card does nothing useful, see the three utilisations above.",
        width=8,
        limits=(Limit("BusyWithoutWork", "power_share", below=True),),
        top=1.0,
    )
    heat = Panel(
        "timeseries",
        "Temperature",
        (
            Query(sel(_G + "temperature_celsius"), f"core · {GPU_NAME}"),
            Query(sel(_G + "memory_temperature_celsius"), f"memory · {GPU_NAME}"),
            Query(f"min ({sel(_G + 'temperature_slowdown_celsius')})", "slowdown of the core", dashed=True),
        ),
        facts.unit(_G + "temperature_celsius"),
        shows="Temperature of core and memory, and where the card starts to slow itself down.",
        normal="40 to 75 °C under load, memory 10 to 20 °C above the core.",
        act="near the dashed line: fans, airflow, inlet; until then lower the power limit.",
        width=8,
        limits=(Limit("ClockHeldDown", "hot_celsius", unit="celsius"),),
    )
    throttle = Panel(
        "timeseries",
        "Time held down, by reason",
        (Query(f"sum by ({by(GPU)}, reason) ({rate(_G + 'throttle_seconds_total')}) > 0", f"{{{{reason}}}} · {GPU_NAME}"),),
        facts.rate_unit(_G + "throttle_seconds_total"),
        shows="Share of time in which something held the clocks down.",
        normal="nothing, or power_cap in dense prefill.",
        act="thermal reasons: cooling. power_brake: the server's power supplies, not the card.",
        width=8,
        limits=(
            Limit("ThermalSlowdown", "slowed_share"),
            Limit("PowerBrake", "braked_share"),
            Limit("PowerCapLimit", "capped_share"),
        ),
        top=1.0,
        empty="Nothing holds the clocks down.",
    )
    return Row("Power and heat", ((power, heat, throttle),))


_WAYS = {"receive": "to the GPU", "transmit": "from the GPU"}


def _links() -> Row:
    pcie = Panel(
        "timeseries",
        "PCIe traffic",
        (Query(named([(words, rate(f"{_G}pcie_{way}_bytes_total")) for way, words in _WAYS.items()]), f"{{{{what}}}} · {GPU_NAME}"),),
        facts.rate_unit(_G + "pcie_receive_bytes_total"),
        shows="Bytes between host and card.",
        normal="0.02 to 0.1 GB/s; much more only with offload of weights or KV cache, or without NVLink between GPUs.",
        act="beyond half of the link the copies bound the step: shrink the offload.",
        width=8,
    )
    neighbour = Panel(
        "timeseries",
        "SM time of other processes",
        (Query(sel(_G + "neighbour_sm_utilization_ratio"), GPU_NAME),),
        facts.unit(_G + "neighbour_sm_utilization_ratio"),
        shows="Share of SM time used by processes that belong to no engine.",
        normal="0.",
        act="find the process (nvidia-smi pmon -c 1) and move it to another card.",
        width=8,
        limits=(Limit("GpuContention", "neighbour_share"),),
        top=1.0,
        empty="Process ids are not visible here (host PID namespace needed), or the engine is alone.",
    )
    nvlink = Panel(
        "timeseries",
        "NVLink errors",
        (Query(f"sum by ({by(GPU)}, kind) ({rate(_G + 'nvlink_errors_total')})", f"{{{{kind}}}} · {GPU_NAME}"),),
        facts.rate_unit(_G + "nvlink_errors_total"),
        shows="Errors on the links each second, by kind.",
        normal="0; single CRC errors are corrected.",
        act="reseat or replace; nvidia-smi nvlink -e shows which link. Traffic over the links is on the board Parallel.",
        width=8,
        limits=(Limit("NvlinkErrors", "crc_per_second", unit="/s", of="crc_flit and crc_data"),),
        signs=(Sign("NvlinkErrors", "any replay or recovery"),),
        empty="This GPU has no NVLink, or its counters need NVML or DCGM.",
    )
    return Row("Links and neighbours", ((pcie, nvlink, neighbour),))


def _flags() -> str:
    """Return what is the matter with a GPU now, as one series for each trouble that there is."""
    pending = number("RowRemapPending", "pending")
    narrow = " or ".join(f"{sel(f'{_G}pcie_link_{what}')} < {sel(f'{_G}pcie_link_{what}_max')}" for what in ("width", "generation"))
    parts = {
        "row remap pending": f"{sel(_G + 'row_remap_pending')} == {pending}",
        "row remap failed": f"{sel(_G + 'row_remap_failure')} == {pending}",
        "recovery action": f"{sel(_G + 'recovery_action')} > {number('GpuRecoveryWanted', 'nothing')}",
        "DCGM profiling stuck": f"{sel(_G + 'profiling_stuck')} == {number('ProfilingStuck', 'stuck')}",
        "lost": f"1 + ({sel(_G + 'up')} == {number('GpuLost', 'lost')})",
        "PCIe link degraded": f"({narrow}) and on ({by(GPU)}) {sel(_G + 'utilization_ratio')} > {number('PcieLinkDegraded', 'busy')}",
    }
    return named(list(parts.items()))


def _health() -> Row:
    missing = f"max by ({by(PLACE)}) ({sel('heptascope_gpus_expected')} - {sel('heptascope_gpus_visible')})"
    errors = Panel(
        "timeseries",
        "Errors and troubles of the card",
        (
            Query(_grown("xid_errors_total", "xid"), f"XID {{{{xid}}}} · {GPU_NAME}"),
            Query(_grown("ecc_errors_total", "kind"), f"ECC {{{{kind}}}} · {GPU_NAME}"),
            Query(_flags(), f"{{{{what}}}} · {GPU_NAME}"),
            Query(f"{missing} > {number('GpusMissing', 'missing')}", f"GPUs missing · {POD_NAME}"),
        ),
        "short",
        shows=(
            "XID and ECC errors of the last ten minutes; then what lasts: rows to be remapped, what the driver wants done, "
            "a link with fewer lanes or of a lower generation than it could have, a GPU that is lost or missing."
        ),
        normal="empty.",
        act="the runbooks XidErrors and EccUncorrected say which codes mean a reset and which a new card.",
        width=8,
        signs=(
            Sign("XidErrors", "XID of a code that stands for a fault of the card"),
            Sign("EccUncorrected", "ECC uncorrected"),
            Sign("RowRemapPending", "row remap pending or failed"),
            Sign("GpuRecoveryWanted", "recovery action"),
            Sign("GpuLost", "lost"),
            Sign("GpusMissing", "GPUs missing"),
            Sign("PcieLinkDegraded", "PCIe link degraded"),
            Sign("ProfilingStuck", "DCGM profiling stuck"),
        ),
        empty="No errors.",
    )
    replays = Panel(
        "timeseries",
        facts.title(_G + "pcie_replays_total"),
        (Query(rate(_G + "pcie_replays_total"), GPU_NAME),),
        facts.rate_unit(_G + "pcie_replays_total"),
        shows="Packets that went over PCIe twice, each second.",
        normal="0; a few when the link changes its speed.",
        act="reseat the card or its riser; look for errors of the slot in the kernel's log.",
        width=8,
        limits=(Limit("PcieReplays", "replays_per_second", unit="/s"),),
        empty="The driver does not count replays here.",
    )
    total = sel(_G + "memory_total_bytes")
    free = Panel(
        "timeseries",
        "Free device memory",
        (Query(f"({total} - {sel(_G + 'memory_used_bytes')}) / {total}", GPU_NAME),),
        "percentunit",
        shows="Share of the card's memory that nobody uses.",
        normal="level: engines reserve their share when they start, usually all but 5 to 10 %.",
        act="falling towards the line: a leak, or a neighbour; the board Memory shows the bytes.",
        width=8,
        limits=(Limit("DeviceMemoryGrowing", "free_share", below=True, of="while use grows,"),),
    )
    return Row("Health", ((errors, replays, free),))


def board() -> Board:
    """Return the board."""
    return Board(
        uid(Layer.HARDWARE),
        "heptascope / 1 Hardware",
        "Is the card the limit, is it healthy, and is it really at work?",
        (*PLACES, "engine", "gpu"),
        (state_row(Layer.HARDWARE, load_panel(), tokens_panel()), _utilisation(), _speed(), _power(), _links(), _health()),
        layer=Layer.HARDWARE,
    )
