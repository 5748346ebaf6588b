"""A reader keeps what it worked out from the pages before; what it says of a page must not depend on them."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from heptascope.model import Reading
from heptascope.sources.engine.reader import EngineReader
from support.engine_pages import CAPTURES, VLLM_011, VLLM_032, capture

FINISHED = 'vllm:request_success_total{engine="0",finished_reason="stop",model_name="tiny"}'


def said(reading: Reading) -> tuple[list[str], ...]:
    """Return all that a reading says, in one order."""
    parts = (reading.samples, reading.histograms, reading.missing, reading.quality.items())
    return tuple(sorted(map(repr, part)) for part in parts)


def alone(text: str) -> tuple[list[str], ...]:
    """Return what a reader says of the only page that it ever sees."""
    return said(EngineReader("e", "vllm").read_page(text, "", 1.0))


def pages(engine: str) -> list[str]:
    """Return a page of every capture of an engine: with two ranks, adapters, speculation, without families that others have."""
    return [capture(engine, folder.name) for folder in sorted((CAPTURES / engine).iterdir())]


@pytest.mark.parametrize("engine", [VLLM_032, VLLM_011])
def test_pages_that_take_turns_are_read_as_if_each_were_the_only_one(engine: str) -> None:
    """As behind one address that two servers share, and where a server starts again with other flags: back and forth, and repeated."""
    known = {text: alone(text) for text in pages(engine)}
    reader = EngineReader("e", "vllm")
    order = list(known)
    Random(5).shuffle(order)  # noqa: S311  # repeatable order
    for one, other in pairwise(order):
        for text in (one, other, one, one, other):
            assert known[text] == said(reader.read_page(text, "", 1.0))


def test_series_that_come_under_load_are_read_from_their_first_page_on() -> None:
    """New finish reasons and a second model come line by line, each in the middle of the page, and are gone again after a restart."""
    before = capture(VLLM_032, "steady_16")
    assert FINISHED in before
    line = next(line for line in before.split("\n") if line.startswith(FINISHED))
    after, reader = [before], EngineReader("e", "vllm")
    for new in (line.replace('"stop"', '"pause"'), line.replace('"stop"', '"other"'), line.replace('"tiny"', '"adapter"')):
        after.append(after[-1].replace(line, f"{line}\n{new}"))
    for text in (*after, before, after[-1]):
        for _ in range(3):
            assert alone(text) == said(reader.read_page(text, "", 1.0))
    assert len({tuple(map(tuple, alone(text))) for text in after}) == len(after)
