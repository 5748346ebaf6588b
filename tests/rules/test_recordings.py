"""Every recording of real load is judged right, and none is judged wrongly with a part of its signals taken away."""

from __future__ import annotations

import pytest

from heptascope.labels import Match
from heptascope.model import FindingState
from support.degrade import DEGRADATIONS
from support.recordings import all_recordings
from support.replays import claims, match, states, unknown, verdict

NAMES = sorted(all_recordings())
WITHOUT_GPU = ("cpu-starved", "decode-b1", "idle", "kv-severe", "tokenize-heavy", "tp2-straggler")
DEGRADED = [(name, change) for change in DEGRADATIONS for name in NAMES if change != "without GPU" or name in WITHOUT_GPU]


def test_there_are_thirty() -> None:
    """All recordings are here: ten that ship with the demo, twenty beside the tests."""
    assert 30 == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_right_by_its_label(name: str) -> None:
    """The verdict of a recording's steady window is what its label asks for."""
    assert Match.RIGHT is match(name), verdict(name)


@pytest.mark.parametrize(("name", "change"), DEGRADED)
def test_no_wrong_page_with_less_to_go_by(name: str, change: str) -> None:
    """With a source gone, nothing is claimed that the label does not accept."""
    assert Match.WRONG_PAGE is not match(name, change), claims(verdict(name, change))


@pytest.mark.parametrize(("name", "change"), DEGRADED)
def test_a_claim_that_is_gone_cannot_be_told(name: str, change: str) -> None:
    """A rule that no longer fires because a source is gone is not clear: it cannot be judged, and the reason is named."""
    found = verdict(name, change)
    lost = claims(verdict(name)) - claims(found)
    assert [] == [rule for rule in lost if not unknown(found).get(rule)]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "idle"])
def test_without_its_pages_an_engine_cannot_be_judged(name: str) -> None:
    """With the engine's page unreachable no engine rule is judged, and only what the GPU itself shows may be claimed."""
    found = verdict(name, "without engine")
    assert ("degraded" if found["faults"] else "cannot-tell") == found["state"]
    assert {"gpu", "uuid"} >= {label for claim in found["faults"] for label in claim["entity"]}
    assert {"source_down"} == unknown(found)["PrefillStarvesDecode"]


@pytest.mark.parametrize("name", ["decode-b1", "decode-c64", "prefill-8k", "mixed-near-sat", "tp2-c64"])
def test_without_gpm_no_limiter_is_named(name: str) -> None:
    """On a card without activity counters nothing compares its resources, so a healthy server's limiter is unknown, not guessed."""
    found = verdict(name, "without GPM")
    assert ("cannot-tell", None) == (found["state"], found["limiter"])
    assert {"DramBandwidthLimit", "TensorComputeLimit", "HostStepLimit"} <= set(unknown(found))


@pytest.mark.parametrize("name", ["cpu-starved", "eager-b8", "graph-b8", "draft-good"])
def test_without_gpm_utilization_shows_an_idle_gpu(name: str) -> None:
    """NVML's utilization says when no kernel runs, which is enough to see that the GPU waits for the host; what bounds it stays open."""
    found = verdict(name, "without GPM")
    assert (Match.RIGHT, None) == (match(name, "without GPM"), found["limiter"])
    assert "HostStepLimit" in unknown(found)


@pytest.mark.parametrize("name", ["kv-severe", "kv-long", "ngram-low", "aborts", "prefill-starve-heavy", "stream-flood"])
def test_faults_of_the_engine_need_no_gpu(name: str) -> None:
    """What the engine and the host show by themselves is still claimed on a card without activity counters."""
    assert Match.RIGHT is match(name, "without GPM")
    assert verdict(name, "without GPM")["faults"]


@pytest.mark.parametrize("name", ["cpu-starved", "eager-b8", "graph-b8", "draft-good"])
def test_a_host_gap_is_not_healthy_while_the_host_is_hidden(name: str) -> None:
    """A step bound by the host may be a fault; where the processes cannot be seen, that is said, and not that nothing is to be fixed."""
    found = verdict(name, "without host")
    assert ("cannot-tell", "HostStepLimit") == (found["state"], found["limiter"]["rule"])


@pytest.mark.parametrize("name", ["draft-good", "draft-bad-c64", "ngram-low", "eager-b8", "graph-b8"])
def test_an_old_engine_does_not_say_whether_it_drafts(name: str) -> None:
    """Before vLLM 0.8.5 the page is silent on speculation: neither drafting nor what drafting would explain is claimed."""
    found = verdict(name, "old engine")
    assert [] == found["faults"]
    assert "SpeculationBelowBreakEven" in unknown(found)
    assert {"SpeculationHostBound", "EngineCoreSaturated", "LaunchOverhead"} & claims(verdict(name)) <= set(unknown(found))


@pytest.mark.parametrize("change", ["without GPM", "without host", "old engine", "without slow rows"])
@pytest.mark.parametrize("name", ["stream-flood", "eager-b8", "kv-severe", "tp2-straggler"])
def test_what_is_spared_did_not_fire(name: str, change: str) -> None:
    """Second by second: a rule that is clear although signals are missing does not fire where they are there."""
    whole, less = states(name), states(name, change)
    spared = [(t, key) for t, found in less.items() for key, (_, is_spared) in found.items() if is_spared]
    assert [] == [(t, key) for t, key in spared if whole[t].get(key, (None, False))[0] is FindingState.FIRING]
    assert spared
