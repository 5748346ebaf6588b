"""A rule's text: placeholders, thresholds, guard, and the labels that join."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.judging import KV, POWER, rule

JOINED = rule(expr=f"{KV} > $full and on ($entity) {KV} > 0 unless on ($engine) {POWER} > on ($gpu) $full", thresholds={"full": 0.9})


def test_placeholders_are_filled() -> None:
    """In-process the entity is engine and rank, and a window is what is asked for."""
    text = replace(
        JOINED, expr="avg_over_time(x[$window]) > $full and on ($entity) y and on ($engine) z and on ($gpu) a and on ($rank) b"
    ).text("10s")
    assert "avg_over_time(x[10s]) > 0.9 and on (engine, rank) y and on (engine) z and on (gpu) a and on (engine, rank) b" == text


def test_a_gpu_is_its_index() -> None:
    """A GPU's rule joins on the GPU."""
    assert "x and on (gpu) y" == rule(entity="gpu", expr="x and on ($entity) y").text("10s")


def test_pod_labels_stand_in_front() -> None:
    """Rendered for Prometheus, a join also asks for the same pod, whatever it joins on."""
    text = rule(expr="x and on ($entity) y and on ($engine) z and on ($pod) w").text("5m", "namespace, pod")
    assert "x and on (namespace, pod, engine, rank) y and on (namespace, pod, engine) z and on (namespace, pod) w" == text


def test_a_guard_is_joined_to_the_whole_condition() -> None:
    """A condition of several parts is guarded as a whole."""
    guarded = rule(expr="x or y", guard="engine").text("10s")
    assert "( x or y ) and on (engine, rank) heptascope_engine_has_work == 1" == " ".join(guarded.split())


@pytest.mark.parametrize("value", [0.1, 1e-9, 123456789012.0, 0.00003, 1048576.0])
def test_thresholds_keep_their_value(value: float) -> None:
    """A threshold is written so that it reads back as it was."""
    assert value == float(rule(expr="$limit", thresholds={"limit": value}).text("10s"))


def test_an_override_replaces_a_threshold_in_text_and_evidence() -> None:
    """A configured threshold is what is evaluated and what is shown; the others stay."""
    both = rule(expr="x > $low and y > $high", thresholds={"low": 1.0, "high": 2.0}, overridden={"high": 3.0})
    assert "x > 1 and y > 3" == both.text("10s")
    assert (1.0, 3.0) == (both.threshold("low"), both.threshold("high"))


def test_only_thresholds_are_placeholders() -> None:
    """Windows and join labels are no thresholds; those of the gain count."""
    assert {"full", "share"} == replace(JOINED, gain="$share * x[$window] * on ($pod) y").placeholders()


def test_an_unknown_placeholder_is_an_error() -> None:
    """Text with a name that nobody knows is never rendered."""
    with pytest.raises(KeyError, match="nothing"):
        rule(expr="$nothing").text("10s")
