"""Which exchange is taken: the one that sends fewer bytes, counted by hand from the operators' own sizes."""

import pytest

from operators import QSGD, TCDQ, ErrorFeedback, Identity, ScaledSign, TopK
from operators.exchange import choose
from operators.exchange.choice import check


def test_bytes_of_both_by_hand():
    """ScaledSign sends 32 + d bits: of 10 coordinates on 3 ranks 42 bits whole, and of the shards 3, 3 and 4."""
    choice = choose("auto", ScaledSign(), d=10, m=3)

    assert choice.gather_bytes == 3 * 2 * (8 + 42 / 8)
    assert choice.two_shot_bytes == 3 * 2 * (32 + 8) + 2 * 2 * (35 + 35 + 36) / 8
    assert choice.exchange == "gather"


@pytest.mark.parametrize("operator", [QSGD(levels=4), TCDQ(omega=1.0), ErrorFeedback(TopK(fraction=0.01))], ids=repr)
def test_auto_takes_gather_for_two_ranks_and_two_shots_for_many(operator):
    taken = [choose("auto", operator, d=100_000, m=m).exchange for m in (1, 2, 4, 64)]
    assert taken == ["gather", "gather", "two_shot", "two_shot"]


def test_auto_counts_the_second_operator():
    assert choose("auto", ScaledSign(), Identity(), d=100_000, m=4).exchange == "gather"
    assert choose("auto", ScaledSign(), d=100_000, m=4).exchange == "two_shot"


def test_headers_count_for_short_vectors():
    assert choose("auto", ScaledSign(), d=100, m=8).exchange == "gather"


@pytest.mark.parametrize("exchange", ["gather", "two_shot"])
def test_a_named_exchange_is_taken(exchange):
    assert choose(exchange, ScaledSign(), d=10, m=2).exchange == exchange


def test_choice_says_which_and_why():
    assert str(choose("auto", ScaledSign(), d=100_000, m=4)).startswith(
        "the exchange is two_shot: gather is expected to send 150"
    )


def test_another_word_is_refused():
    with pytest.raises(ValueError, match='exchange must be "gather", "two_shot" or "auto"; got \'ring\''):
        check("ring")
