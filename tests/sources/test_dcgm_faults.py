"""Host engines that fail: absent, restarting, frozen, hung, without rights; the page never shows what is no longer true."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from heptascope.model import Reason
from heptascope.sources.base import SourceError
from heptascope.sources.gpu import dcgm_codes
from heptascope.sources.gpu.dcgm_card import first_pass
from heptascope.sources.gpu.dcgm_codes import FUNCTION_NOT_FOUND, Reaction, blank_double, blank_int, blank_string, decode, meaning
from heptascope.sources.gpu.dcgm_fields import FAST, SLOW
from support.dcgm_bench import DcgmBench
from support.fake_nvml import Gate
from support.gpu_rows import reasons, value, values


def test_a_restart_under_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks: no old value is served, everything is built anew, and our own counters go on."""
    bench = DcgmBench(monkeypatch, "restart")
    before = value(bench.warm(), "pcie_receive_bytes_total")
    with pytest.raises(SourceError, match="the connection to the host engine broke") as caught:
        bench.read(1.5)
    assert Reason.SOURCE_DOWN == caught.value.reason
    with pytest.raises(SourceError):
        bench.read()
    bench.read(4.0)
    after = value(bench.warm(), "pcie_receive_bytes_total")
    assert after > before
    assert 1 == len(bench.engine.connections)
    assert 3 == len(bench.engine.field_groups)


def test_a_node_whose_driver_is_not_up_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every watch raises "NVML not loaded": the source is down, tries ever less often, leaves nothing behind, and then works."""
    bench = DcgmBench(monkeypatch, "no_driver")
    for _ in range(19):
        with pytest.raises(SourceError, match="the NVIDIA driver is not up there"):
            bench.read()
    assert bench.engine.calls.count("dcgmConnect") < 8
    assert set() == bench.engine.connections
    assert 1.0 == value(bench.read(20.0), "up")


def test_fields_that_an_older_engine_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """One unknown field fails a whole group: they are found by halving, dropped with their reason, and all others are read."""
    bench = DcgmBench(monkeypatch, "old_engine")
    reading, slow = bench.warm(), bench.read_slow()
    assert (474.052, 0.890225) == pytest.approx((value(reading, "power_watts"), value(reading, "dram_active_ratio")), abs=1e-5)
    (gap,) = reasons(slow, "recovery_action")
    assert (Reason.NOT_SUPPORTED, "DCGM field 1523: this host engine does not know field 1523") == (gap.reason, gap.detail)
    approximate = {dict(pairs)["reason"] for name, pairs in reading.quality if name.endswith("throttle_seconds_total")}
    assert "power_cap" in approximate


def test_no_profiling_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failed watch drops the plain fields too: they are watched again, and profiling has its reason and remedy."""
    bench = DcgmBench(monkeypatch, "no_module")
    reading = bench.warm()
    assert (474.052, 1.0) == (value(reading, "power_watts"), value(reading, "up"))
    (gap,) = reasons(reading, "dram_active_ratio")
    assert Reason.NOT_SUPPORTED == gap.reason
    assert "install datacenter-gpu-manager-4-proprietary" in gap.detail


@pytest.mark.parametrize(
    ("code", "reason"),
    [(-17, Reason.NO_PERMISSION), (-29, Reason.NO_PERMISSION), (-36, Reason.NOT_SUPPORTED), (-37, Reason.PROFILER_LOCKED)],
)
def test_profiling_refused(monkeypatch: pytest.MonkeyPatch, code: int, reason: Reason) -> None:
    """No rights, no support or another profiler cost the profiling values alone, with the reason."""
    bench = DcgmBench(monkeypatch, errors={"dcgmProfGetSupportedMetricGroups": code})
    reading = bench.warm()
    assert 1.0 == value(reading, "up")
    assert [reason] == [m.reason for m in reasons(reading, "sm_active_ratio")]


def test_another_profiler_lets_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """While another profiler holds the counters we try slowly, and have values once it is gone."""
    bench = DcgmBench(monkeypatch, phase="copy", errors={"dcgmProfGetSupportedMetricGroups": -34})
    for _ in range(10):
        bench.read()
    assert bench.engine.calls.count("dcgmProfGetSupportedMetricGroups") <= 5
    bench.engine.errors = {}
    bench.read(20.0)
    assert 0.8902 == pytest.approx(value(bench.warm(), "dram_active_ratio"), abs=1e-4)


def test_one_sick_gpu_of_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """One GPU falls off the bus: its `up` is 0 and its values have the reason, the other seven go on; later it is back."""
    bench = DcgmBench(monkeypatch, "one_sick")
    reading = bench.warm()
    ups = {dict(pairs)["gpu"]: v for pairs, v in values(reading, "up").items()}
    assert {str(n): float(n != 5) for n in range(8)} == ups
    assert {str(n) for n in range(8) if n != 5} == {dict(pairs)["gpu"] for pairs in values(reading, "power_watts")}
    assert {(Reason.SOURCE_DOWN, "the GPU is lost")} == {m[1:3] for m in reasons(reading, "power_watts")}
    bench.read(60.0)
    assert [1.0] * 8 == list(values(bench.read(), "up").values())


def test_a_gpu_that_is_lost_when_we_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine takes no group with a lost GPU: that one is left out, by halving, and all others are watched."""
    bench = DcgmBench(monkeypatch, "one_sick")
    bench.clock.t += 5.0
    ups = {dict(pairs)["gpu"]: v for pairs, v in values(bench.read(), "up").items()}
    assert {str(n): float(n != 5) for n in range(8)} == ups
    bench.read_slow(60.0)
    assert [1.0] * 8 == list(values(bench.read(), "up").values())
    assert 8 == len(values(bench.warm(), "sm_active_ratio"))


def test_a_lost_gpu_keeps_its_name_over_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine restarts while a GPU is lost: that one is still known by its uuid, once."""
    bench = DcgmBench(monkeypatch, "one_sick")
    bench.read()
    bench.engine.clear()
    with pytest.raises(SourceError):
        bench.read(4.0)
    found = values(bench.read(5.0), "up")
    assert {"GPU-5": 0.0} == {dict(pairs)["uuid"]: v for pairs, v in found.items() if not v}
    assert 8 == len(found)


def test_an_a100_that_takes_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counters of several passes are refused together: those of the first pass are read, and the others say why not."""
    bench = DcgmBench(monkeypatch, "a100")
    reading = bench.warm()
    for name in ("sm_active_ratio", "tensor_active_ratio", "dram_active_ratio", "fp64_active_ratio"):
        assert 1 == len(values(reading, name))
    (gap,) = reasons(reading, "fp16_active_ratio")
    assert "together with the other counters" in gap.detail
    assert ["this card has no such counter"] == [m.detail for m in reasons(reading, "int_active_ratio")]


def test_first_pass_takes_one_minor_of_each_major() -> None:
    """Different majors are measured at once, minors of one major by turns: the fullest minor is chosen."""
    groups = [(0, 0, (1002, 1003, 1004)), (0, 1, (1008,)), (1, 0, (1005,))]
    assert [1005, 1003, 1002] == first_pass(groups, [1005, 1008, 1003, 1002])


def test_stuck_profiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Utilisation 100 with profiling 0 after an XID is no idle GPU: the zeros are withheld, it is flagged, and the watch is made anew."""
    bench = DcgmBench(monkeypatch, "stuck", set={"203": 100})
    bench.warm()
    flagged, shown = [], []
    for _ in range(8):
        reading = bench.read()
        flagged.append(value(reading, "profiling_stuck"))
        shown.append(next(iter(values(reading, "graphics_engine_active_ratio").values()), None))
    assert 1.0 in flagged
    assert 0.0 == flagged[-1]
    assert None is shown[flagged.index(1.0)]
    assert 0.9 < (shown[-1] or 0.0)
    assert 1.0 == value(reading, "xid_errors_total", xid="31")
    assert 1003.5 == pytest.approx(value(reading, "xid_error_last_timestamp_seconds", xid="31"), abs=1.0)


def test_watches_that_the_engine_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields that are not watched any more are watched again after three reads, over the same connection."""
    bench = DcgmBench(monkeypatch)
    bench.warm()
    bench.engine.watches.clear()
    ups = [next(iter(values(bench.read(), "up").values())) for _ in range(5)]
    assert [0.0, 0.0, 0.0, 1.0, 1.0] == ups
    assert 1 == bench.engine.calls.count("dcgmConnect")


def test_no_xid_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first error the engine has no data of the field: the counters stand at 0."""
    bench = DcgmBench(monkeypatch)
    bench.engine.gpus[0].refused = {230: -14}
    assert 0.0 == value(bench.warm(), "xid_errors_total", xid="79")


def test_an_xid_from_before_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last code never resets: one that stood there when we came is no new error."""
    bench = DcgmBench(monkeypatch, set={"230": 79})
    assert 0.0 == value(bench.warm(), "xid_errors_total", xid="79")


def test_release_when_the_driver_is_unbound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Field 6 says that the driver goes: all watches are given back and the connection ends, until it is bound again."""
    bench = DcgmBench(monkeypatch, "unbind")
    bench.read()
    with pytest.raises(SourceError, match="the driver is being unbound"):
        bench.read(2.5)
    assert (set(), {}, {}) == (bench.engine.connections, bench.engine.watches, bench.engine.field_groups)
    for _ in range(5):
        with pytest.raises(SourceError):
            bench.read()
        assert set() == bench.engine.connections
    assert 1.0 == value(bench.read(60.0), "up")


def test_gpus_detached_releases_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine of 4.5 answers -67 while it is detached: close everything, say so."""
    bench = DcgmBench(monkeypatch)
    bench.read()
    bench.engine.errors = {"dcgmEntitiesGetLatestValues": -67}
    with pytest.raises(SourceError, match="detached from the driver"):
        bench.read()
    assert set() == bench.engine.connections


def test_frozen_values_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that renews nothing any more answers as before: after ten seconds the source is down and connects anew."""
    bench = DcgmBench(monkeypatch, phase="copy")
    bench.warm()
    bench.engine.frozen = bench.clock()
    for _ in range(10):
        bench.read()
    with pytest.raises(SourceError, match="has renewed no value for 11 s"):
        bench.read()
    bench.engine.frozen = None
    assert 1.0 == value(bench.read(5.0), "up")


def test_a_timeout_keeps_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single failed call is worth another try with what stands."""
    bench = DcgmBench(monkeypatch)
    bench.read()
    bench.engine.errors = {"dcgmEntitiesGetLatestValues": -11}
    with pytest.raises(SourceError, match="did not answer in time"):
        bench.read()
    bench.engine.errors = {}
    bench.read()
    assert 1 == bench.engine.calls.count("dcgmConnect")


@pytest.mark.parametrize("code", [-12, -20, -44])
def test_another_version(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Library and engine of different versions: not supported, with the remedy, and not asked every second."""
    bench = DcgmBench(monkeypatch, errors={"dcgmConnect": code})
    for _ in range(10):
        with pytest.raises(SourceError, match=r"version|too old") as caught:
            bench.read()
        assert Reason.NOT_SUPPORTED == caught.value.reason
    tries = 2 if code == FUNCTION_NOT_FOUND else 1  # by URI, then by address
    assert bench.engine.calls.count("dcgmConnect") < 6 * tries


def test_a_hung_call_does_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a call of one source hangs, the other says so and returns; closing does not wait for it."""
    bench = DcgmBench(monkeypatch)
    bench.read()
    gate = bench.engine.block["dcgmEntitiesGetLatestValues"] = Gate()
    monkeypatch.setattr("heptascope.sources.gpu.dcgm_session.LOCK_SECONDS", 0.01)
    monkeypatch.setattr("heptascope.sources.gpu.dcgm_session.CLOSE_SECONDS", 0.01)
    hung = threading.Thread(target=bench.read, daemon=True)
    hung.start()
    gate.reached.wait(5.0)
    with pytest.raises(SourceError, match="has not come back"):
        bench.read_slow()
    bench.slow.close()
    gate.open()
    hung.join(5.0)
    assert not hung.is_alive()


def test_no_permission_for_one_field(monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that is forbidden or not supported is a reason of its own, and the latter is not asked again."""
    bench = DcgmBench(monkeypatch)
    bench.engine.gpus[0].refused = {155: -17, 150: -6}
    reading = bench.warm()
    assert [Reason.NO_PERMISSION] == [m.reason for m in reasons(reading, "power_watts")]
    assert [Reason.NOT_SUPPORTED] == [m.reason for m in reasons(reading, "temperature_celsius")]
    bench.engine.gpus[0].refused = {}
    reading = bench.read()
    assert (1, 0) == (len(values(reading, "power_watts")), len(values(reading, "temperature_celsius")))


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_blank_values(offset: int) -> None:
    """All four blanks of each type are none; numbers beside them are numbers."""
    kinds = [Reason.SOURCE_DOWN, Reason.NOT_SUPPORTED, Reason.NOT_SUPPORTED, Reason.NO_PERMISSION]
    texts = ["<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"]
    found = [blank_int(blank + offset, wide) for blank in (2**63 - 16, 2147483632) for wide in (True, False)]
    found += [blank_double(2.0**47 + offset), blank_string(texts[offset])]
    assert [kinds[offset]] * 6 == [why[0] for why in found if why is not None]


def test_numbers_that_only_look_blank() -> None:
    """A nanosecond counter may pass 2^31 - 16, and a double may be above 2^47 + 15."""
    assert [None] * 5 == [
        blank_int(2147483636, True), blank_int(2147483631, False), blank_double(2.0**47 + 16), blank_double(1.0), blank_string("NVIDIA")
    ]  # fmt: skip
    assert blank_double(float("nan")) is not None


def test_a_gpu_whose_every_value_is_a_small_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blanks of 32 bits come in fields of 64 bits: no counter shows 2147483632 of anything, and a GPU with nothing else is not up."""
    powers = {"155": 2.0**47, "164": 2.0**47}  # the doubles among them
    bench = DcgmBench(monkeypatch, set={str(field.id): 2147483632 for field in (*FAST, *SLOW)} | powers)
    reading, slow = bench.read(), bench.read_slow()
    assert 0.0 == value(reading, "up")
    assert [] == [sample for sample in (*reading.samples, *slow.samples) if sample.name.endswith("_total") and sample.value > 0]


def test_a_counter_that_is_a_small_blank(monkeypatch: pytest.MonkeyPatch) -> None:
    """2147483632 ECC errors, or as many millijoules, are no value, and the reason is named; the other values go on."""
    bench = DcgmBench(monkeypatch, set={"311": 2147483634, "156": 2147483633, "393": 2147483632, "202": 2147483640})
    reading, slow = bench.warm(), bench.read_slow()
    assert [Reason.NOT_SUPPORTED] == [m.reason for m in reasons(reading, "energy_joules_total")]
    kinds = [dict(pairs)["kind"] for name in ("ecc_errors_total", "remapped_rows_total") for pairs in values(slow, name)]
    assert ["corrected", "corrected"] == kinds
    assert {} == values(slow, "pcie_replays_total")
    assert 1.0 == value(reading, "up")


@pytest.mark.parametrize(
    ("blank", "reason"),
    [(2**63 - 14, Reason.NOT_SUPPORTED), (2147483635, Reason.NO_PERMISSION), (10**12, Reason.INVALID), (-1, Reason.INVALID)],
)
def test_xids_that_cannot_be_told(monkeypatch: pytest.MonkeyPatch, blank: int, reason: Reason) -> None:
    """A blank that says why, or no code at all, is no absence of errors: nothing stands at 0."""
    reading = DcgmBench(monkeypatch, set={"230": blank}).warm()
    assert {} == values(reading, "xid_errors_total")
    assert [reason] == [m.reason for m in reasons(reading, "xid_errors_total")]


def test_an_unknown_type_is_no_value() -> None:
    """A blob, or a type of a later version, is never taken for a number."""
    found = decode(SimpleNamespace(ts=1, status=0, fieldType=ord("b"), value=SimpleNamespace()))
    assert (None, Reason.INVALID) == (found.value, found.why[0] if found.why else None)


def test_every_code_of_the_table_has_its_reaction() -> None:
    """The codes that DCGM documents are told apart; an unknown one is worth another try."""
    expected = {
        Reaction.REBUILD: {-7, -10, -21, -56, -57},
        Reaction.GIVE_UP: {-12, -20, -25, -44},
        Reaction.NO_PROFILING: {-17, -23, -29, -33, -36, -37},
        Reaction.LOSE_GPU: {-18, -19, -22},
        Reaction.SPLIT: {-1, -38},
        Reaction.FORGET: {-6, -13},
        Reaction.LOOK_AGAIN: {-45, -46},
        Reaction.RELEASE: {-67},
        Reaction.GO_ON: {-3, -8, -11, -14, -15, -16, -24, -26, -34, -54},
    }
    for reaction, codes in expected.items():
        assert {reaction} == {meaning(code).reaction for code in codes}
    assert set(dcgm_codes._CODES) == set().union(*expected.values())
    assert (Reaction.GO_ON, "DCGM error -99") == (meaning(-99).reaction, meaning(-99).text)
