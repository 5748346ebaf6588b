"""The metric reference."""

from __future__ import annotations

from pathlib import Path

from heptascope.model import Layer, Reason
from heptascope.signals.label_values import ROLES, VALUES
from heptascope.signals.schema import SCHEMA
from heptascope.surfaces.reference import page
from heptascope.surfaces.words import LAYER_WORDS, REASON_WORDS

REFERENCE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_page_in_docs_is_current() -> None:
    """`python -m heptascope.surfaces.reference > docs/metrics.md` makes it so."""
    assert page() == REFERENCE.read_text(encoding="utf-8")


def test_every_signal_has_one_row() -> None:
    """The reference names each signal of the table exactly once, in its order."""
    rows = [line.split("`")[1] for line in page().splitlines() if line.startswith("| `heptascope_")]
    assert list(SCHEMA) == rows


def test_every_layer_and_reason_has_words() -> None:
    """The closed lists are explained in full."""
    assert list(Layer) == list(LAYER_WORDS)
    assert list(Reason) == list(REASON_WORDS)


def test_rows_are_well_formed() -> None:
    """No help text breaks its row."""
    assert {8} == {line.replace("\\|", "").count("|") for line in page().splitlines() if line.startswith("| `heptascope_")}


def test_closed_lists_of_labels_are_told() -> None:
    """Whoever writes a file of signals finds how the values of a label are spelled."""
    text = page()
    assert [] == [value for known in (*VALUES.values(), ROLES[1]) for value in known if f"`{value}`" not in text]
