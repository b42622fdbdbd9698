import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.network import Shape
from gpu_validation.network.links import address, hardware_address


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate_bit_per_s": 10.0}, r"rate_bit_per_s must lie in .* or be None; got 10.0"),
        ({"delay_s": -1e-3}, r"delay_s must lie in \[0, 10\] seconds; got -0.001"),
        ({"jitter_s": 11.0}, r"jitter_s must lie in \[0, 10\] seconds; got 11.0"),
        ({"loss": 1.0}, "loss must satisfy 0 <= loss < 1; got 1.0"),
        ({"mtu": 100}, "mtu must lie in .* bytes; got 100"),
        ({"delay_s": float("nan")}, "delay_s must lie in .* got nan"),
    ],
)
def test_impossible_values_are_refused_by_name(wrong, message):
    with pytest.raises(ValueError, match=message):
        Shape(**wrong)


def test_only_delay_jitter_and_loss_need_the_switch():
    assert not Shape(rate_bit_per_s=1e8).needs_switch
    assert all(Shape(**{name: 0.01}).needs_switch for name in ("delay_s", "jitter_s", "loss"))


def test_a_shape_says_its_units():
    assert str(Shape(1e8, 2e-3)) == "100 Mbit/s, delay 2 ms, jitter 0 ms, loss 0, MTU 1500"
    assert str(Shape()).startswith("no rate limit")


@given(st.sets(st.integers(0, 249), min_size=2, max_size=2))
def test_no_two_ranks_share_an_address(ranks):
    one, two = ranks
    assert address(one) != address(two)
    assert hardware_address(one) != hardware_address(two)


def test_the_hardware_address_ends_with_the_rank():
    for rank in (0, 7, 249):
        *_, high, low = hardware_address(rank).split(":")
        assert int(high, 16) * 256 + int(low, 16) == rank
