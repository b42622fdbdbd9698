"""Links that know the exchange: each takes what its own formula says."""

import pytest

from bounds.runtime import Links, Ring, RingGather, TwoShot


def test_every_exchange_takes_its_own_way():
    links, bits = Links(0.1, 100.0), 8000.0
    for name, kind in (("sum", Ring), ("gather", RingGather), ("two_shot", TwoShot)):
        assert links.of(name).seconds(m=4, bits=bits) == kind(0.1, 100.0).seconds(m=4, bits=bits)
    assert links.of("gather").seconds(m=4, bits=bits) == pytest.approx(3 * (0.1 + 10.0))
    assert links.seconds(m=4, bits=bits) == Ring(0.1, 100.0).seconds(m=4, bits=bits)


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="exchange must be sum, gather, two_shot; got 'tree'"):
        Links(0.1, 100.0).of("tree")
