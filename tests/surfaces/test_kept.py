"""Rendered bodies, kept while they are right."""

from __future__ import annotations

import gzip

from heptascope.surfaces.kept import Body, Kept


class Maker:
    """Makes bodies and counts them."""

    made = 0

    def __call__(self) -> Body:
        """Return a new body."""
        self.made += 1
        return Body(b"body %d" % self.made)


def test_kept_until_the_next_version() -> None:
    """The same version gives the same body, the next one a new one; another key has its own."""
    kept, make = Kept(), Maker()
    first = kept.get("a", 1, 10.0, make)
    assert first is kept.get("a", 1, 10.5, make)
    assert first is not kept.get("b", 1, 10.5, make)
    assert first is not kept.get("a", 2, 10.6, make)
    assert 3 == make.made


def test_kept_for_one_second_at_most() -> None:
    """A second after the first use of a version, or when the clock stepped back, everything is made anew."""
    kept, make = Kept(), Maker()
    kept.get("a", 1, 10.0, make)
    kept.get("a", 1, 10.99, make)
    assert 1 == make.made
    kept.get("a", 1, 11.0, make)
    kept.get("a", 1, 5.0, make)
    assert 3 == make.made


def test_bounded_number_of_bodies() -> None:
    """Endless different queries do not fill the memory; they are answered all the same."""
    kept, make = Kept(), Maker()
    bodies = [kept.get(i, 1, 10.0, make) for i in range(1000)]
    assert 1000 == len({body.plain for body in bodies})
    assert len(kept._bodies) <= 16


def test_compression_is_stable() -> None:
    """The same bytes compress to the same bytes: the time is left out."""
    assert Body(b"x" * 1000).gzipped == Body(b"x" * 1000).gzipped
    assert b"x" * 1000 == gzip.decompress(Body(b"x" * 1000).gzipped)
