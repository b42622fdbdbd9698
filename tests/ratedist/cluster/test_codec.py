"""Seconds of coding: given, measured once, never silently free."""

import math

import pytest

import ratedist as rd
from operators import QSGD, Identity, Key
from operators.summed import Exchange, SharedScale
from ratedist.cluster import codec as module


def test_a_codec_is_two_numbers_with_a_source():
    given = rd.Codec(8.5e-9, "4.3e-9")
    assert given.to_dict() == {
        "encode_s_per_coordinate": 8.5e-9,
        "decode_s_per_coordinate": 4.3e-9,
        "source": "given",
        "of_lengths": [],
    }
    assert given.in_words() == "codec given: 8.5 ns a coordinate to encode, 4.3 ns to decode"


@pytest.mark.parametrize("bad", [-1e-9, math.inf, math.nan, "slow", None, True])
def test_other_seconds_are_refused(bad):
    with pytest.raises(ValueError, match="decode_s_per_coordinate must satisfy 0 <= decode_s_per_coordinate"):
        rd.Codec(0, bad)


def test_a_measurement_is_made_once_and_says_where(monkeypatch):
    first = rd.measure_codec("qsgd:16", d=5000)
    monkeypatch.setattr(module, "_timed", lambda *_: pytest.fail("measured again"))
    assert rd.measure_codec(QSGD(levels=16), d="5e3") == first
    assert first.source.startswith("measured on this machine (cpu, ")
    assert "5000 coordinates" in first.source
    assert first.encode_s_per_coordinate > 0
    assert first.decode_s_per_coordinate > 0


def test_seconds_are_those_of_encode_and_of_decode_a_coordinate(monkeypatch):
    """A clock that only the operator moves: 3 s an encode, 5 s a decode, of any length."""
    now = [0.0]

    class Slow(Identity):
        def encode(self, x, *, key):
            now[0] += 3
            return super().encode(x, key=key)

        def decode(self, message, *, d, key=None):
            now[0] += 5
            return super().decode(message, d=d, key=key)

    monkeypatch.setattr(module.time, "thread_time", lambda: now[0])
    found = module._measured("slow", Slow(), 10**6, "cpu", 1)
    size = module.FIRST_COORDINATES  # so slow that a longer vector is not tried
    assert (found.encode_s_per_coordinate, found.decode_s_per_coordinate) == (
        pytest.approx(3 / size, rel=0.05),
        pytest.approx(5 / size, rel=0.05),
    )


ROWS = ((100, 1e-3, 2e-3), (1000, 4e-3, 3e-3))


@pytest.mark.parametrize(
    ("length", "encode_s", "decode_s"),
    [(50, 1e-3, 2e-3), (100, 1e-3, 2e-3), (400, 2e-3, 2e-3 + 1e-3 / 3), (1000, 4e-3, 3e-3), (5000, 20e-3, 15e-3)],
)
def test_a_message_between_measured_lengths_costs_what_lies_between(length, encode_s, decode_s):
    codec = rd.Codec(4e-6, 3e-6, "measured", ROWS)
    assert codec.of_messages(length) == (pytest.approx(encode_s / length), pytest.approx(decode_s / length))
    assert rd.Codec(4e-6, 3e-6).of_messages(length) == (4e-6, 3e-6)


@pytest.mark.parametrize(
    "rows", [ROWS[::-1], (ROWS[0], ROWS[0]), ((100, 1e-3),), ((100, -1.0, 0.0),), ((0, 1.0, 1.0),)]
)
def test_lengths_that_do_not_rise_and_seconds_below_0_are_refused(rows):
    with pytest.raises(ValueError, match=r"of_lengths must be rising|must satisfy"):
        rd.Codec(1e-9, 1e-9, "given", rows)


def test_short_messages_are_measured_too(monkeypatch):
    """3 s a message and a second for each of 1000 coordinates to encode, 5 s to decode."""
    monkeypatch.setattr(module, "_timed", lambda operator, size, device: (3 + size / 1000, 5.0))
    d = 16384
    found = module._measured("costly messages", Identity(), d, "cpu", 1)
    assert [row[0] for row in found.of_lengths] == [256, 1024, 4096, 16384]
    for length in (256, 700, 4096, 10_000, d):
        encode_s, decode_s = (length * each for each in found.of_messages(length))
        assert encode_s == pytest.approx(3 + length / 1000, rel=0.02)  # two digits
        assert decode_s == pytest.approx(5, rel=0.02)


def test_what_is_timed_may_be_a_vector_of_ones_own_and_by_a_clock_of_ones_own():
    """The clock counts the coordinates that it is asked about: what it says of them is what the codec has."""
    import torch

    x, seen = torch.arange(1.0, 1025), []

    class Looking(Identity):
        def encode(self, x, *, key):
            seen.append(x.clone())
            return super().encode(x, key=key)

    found = rd.measure_codec(Looking(), x=x, seconds_of=lambda call: (call(), 2.0)[1])
    assert found.of_lengths == ((256, 2.0, 2.0), (1024, 2.0, 2.0))
    assert {len(each) for each in seen} == {256, 1024}
    assert all(torch.equal(each, x[: len(each)]) for each in seen)
    with pytest.raises(ValueError, match="is timed on a vector of its own; got x"):
        rd.measure_codec("sign_vote", x=x)


def test_of_a_sum_the_last_reading_is_decoding_and_all_before_it_encoding(monkeypatch):
    """A clock that only the packing of terms moves, 3 s, and the reading of sums, 5 s, in each of two rounds."""
    now = [0.0]

    def slower(cls, name, seconds):
        function = getattr(cls, name)

        def call(self, *arguments):
            now[0] += seconds * (self._rank == 0)  # of the rank that is timed
            return function(self, *arguments)

        return call

    packed = Exchange.outgoing.fget
    monkeypatch.setattr(Exchange, "packed", packed, raising=False)
    monkeypatch.setattr(Exchange, "outgoing", property(slower(Exchange, "packed", 3)))
    monkeypatch.setattr(Exchange, "receive", slower(Exchange, "receive", 5))
    monkeypatch.setattr(module.time, "thread_time", lambda: now[0])

    size = module.FIRST_COORDINATES
    found = module._measured("slow", SharedScale(12), 10**6, "cpu", 1)

    assert found.encode_s_per_coordinate == pytest.approx((3 + 5 + 3) / size, rel=0.05)
    assert found.decode_s_per_coordinate == pytest.approx(5 / size, rel=0.05)


def test_a_sum_is_not_timed_where_it_cannot_be():
    with pytest.raises(ValueError, match="is summed by the CPU; got device = 'cuda'"):
        rd.measure_codec("sign_vote", d=100, device="cuda")


def test_a_fast_codec_is_measured_on_a_long_vector(monkeypatch):
    sizes = []

    def timed(operator, size, device):
        sizes.append(size)
        return size * 1e-9, size * 2e-9

    monkeypatch.setattr(module, "_timed", timed)
    found = module._measured("fast", Identity(), 10**6, "cpu", 1)
    assert sizes == [module.FIRST_COORDINATES, 10**6, *module.lengths_of(10**6)[:-1]]
    assert (found.encode_s_per_coordinate, found.decode_s_per_coordinate) == (1e-9, 2e-9)


def test_an_operator_that_refuses_the_vector_is_said_to(monkeypatch):
    class Refusing(Identity):
        def encode(self, x, *, key):
            raise ValueError("not this one")

    with pytest.raises(ValueError, match=r"could not be timed \(not this one\): give codec"):
        module._measured("refusing", Refusing(), 100, "cpu", 1)


def test_measuring_leaves_the_callers_randomness_alone():
    import torch

    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    rd.measure_codec("natural", d=777)
    assert torch.equal(torch.randn(3), expected)
    assert Key(0) == Key(0)
