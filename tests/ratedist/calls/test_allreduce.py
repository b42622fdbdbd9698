"""One averaging: bits by counting, errors by the law, and never below the limit of any exchange."""

import math

import pytest

import ratedist as rd
from bounds.limits import mean_exchange_rate, mean_received_rate
from operators import parse
from operators.summed import SharedScale, SignVote, SummedPowerSGD

D = 400_000


@pytest.mark.parametrize("m", [4, 8, 64])
def test_two_shots_send_two_messages_whatever_the_number_of_workers(m):
    result = rd.allreduce(d=D, m=m, operator="tcdq:omega=0.1", exchange="two_shot")
    message = m * parse("tcdq:omega=0.1").bits(math.ceil(D / m)).expected_upper

    assert result.sent_bits == pytest.approx((1 - 1 / m) * 2 * message, rel=1e-12)
    assert result.nmse == pytest.approx(0.1 + 0.1 * 1.1, rel=1e-12)
    assert result.aligned_nmse == pytest.approx(0.1 / m + 0.1 * (1 + 0.1 / m), rel=1e-12)


def test_gathering_sends_a_message_to_each_of_the_others():
    result = rd.allreduce(d=D, m=8, operator="tcdq:omega=0.1", exchange="gather")

    assert result.sent_bits == 7 * parse("tcdq:omega=0.1").bits(D).expected_upper
    assert (result.nmse, result.aligned_nmse) == (pytest.approx(0.1), pytest.approx(0.1 / 8))
    assert result.ideal_bits == pytest.approx(7 * mean_received_rate(m=8, nmse=result.nmse), rel=1e-12)


@pytest.mark.parametrize(("m", "exchange"), [(2, "gather"), (8, "two_shot")])
def test_auto_takes_what_sends_less(m, exchange):
    assert rd.allreduce(d=D, m=m, operator="tcdq:omega=0.1").exchange == exchange


@pytest.mark.parametrize(
    ("d", "link", "exchange"),
    [
        (1_000, {"latency_s": 1e-3}, "gather"),  # hops count: 7 of them against 14
        (1_000, {"bandwidth_bit_per_s": 1e3, "latency_s": 0}, "two_shot"),
        (D, {"latency_s": 1e-3}, "gather"),
        (100 * D, {"latency_s": 1e-3}, "two_shot"),
        (1_000, {}, "two_shot"),  # without a link of one's own bits are compared
    ],
)
def test_auto_takes_what_is_faster_on_a_link_that_is_given(d, link, exchange):
    asked = {"d": d, "m": 8, "operator": "tcdq:omega=0.1"} | link
    ways = {way: rd.allreduce(**asked, exchange=way) for way in ("gather", "two_shot")}

    assert rd.allreduce(**asked).exchange == exchange
    if link:
        assert min(ways, key=lambda way: ways[way].seconds) == exchange
        assert rd.allreduce(**asked) == ways[exchange]


def test_auto_counts_the_seconds_of_codecs_on_a_link_that_is_given():
    asked = {"d": D, "m": 8, "operator": "tcdq:omega=0.1", "latency_s": 1e-3}
    slow = rd.Codec(encode_s_per_coordinate=0, decode_s_per_coordinate=1e-6)  # seven messages are decoded, or two

    assert rd.allreduce(**asked).exchange == "gather"
    assert rd.allreduce(**asked, codec=slow).exchange == "two_shot"


@pytest.mark.parametrize("exchange", ["gather", "two_shot"])
@pytest.mark.parametrize("m", [2, 4, 64, 1024])
@pytest.mark.parametrize("operator", ["tcdq:omega=0.1", "tcdq:omega=0.01", "qsgd:16,bucket=512"])
def test_no_exchange_is_below_the_limit(operator, m, exchange):
    result = rd.allreduce(d=D, m=m, operator=operator, exchange=exchange)

    assert result.limit_bits is None or (result.gap_bits > 0 and result.ideal_bits >= result.limit_bits * (1 - 1e-12))


def test_dense_numbers_are_summed_exactly_and_biased_ones_have_no_law():
    dense = rd.allreduce(d=D, m=8, operator="identity")
    biased = rd.allreduce(d=D, m=8, operator="topk:0.1")

    assert (dense.exchange, dense.nmse, dense.sent_bits) == ("sum", 0.0, dense.dense_bits)
    assert (biased.exchange, biased.nmse, biased.theorem) == ("gather", None, "")
    with pytest.raises(ValueError, match="unbiased operators at both stages"):
        rd.allreduce(d=D, m=8, operator="topk:0.1", exchange="two_shot")


def test_codecs_of_both_stages_are_counted():
    codec = rd.Codec(encode_s_per_coordinate=2e-9, decode_s_per_coordinate=1e-9)

    result = rd.allreduce(d=D, m=8, operator="tcdq:omega=0.1", exchange="two_shot", codec=codec)

    assert result.encode_s == pytest.approx((1 + 1 / 8) * D * 2e-9)
    assert result.decode_s == pytest.approx(2 * D * 1e-9)
    assert result.seconds == pytest.approx(result.communicate_s + result.encode_s + result.decode_s)


@pytest.mark.parametrize(("given", "text"), [({"m": 1}, "m >= 2"), ({"exchange": "ring"}, "exchange must be one of")])
def test_wrong_arguments_are_refused(given, text):
    with pytest.raises(ValueError, match=text):
        rd.allreduce(**{"d": D, "m": 8, "operator": "identity"} | given)


def test_what_is_summed_on_the_way_is_two_all_reduces_with_a_joint_claim():
    m, word_bits = 8, 12
    room = 2 ** (word_bits - 1) - m

    result = rd.allreduce(d=D, m=m, operator=SharedScale(word_bits, block=512), latency_s=1e-3)

    bits = 32 * math.ceil(D / 512), word_bits * D
    assert (result.exchange, result.sent_bits) == ("sum", pytest.approx(2 * 7 / 8 * sum(bits)))
    assert result.nmse == pytest.approx(512 * m * m / (4 * room**2), rel=1e-5)
    assert result.aligned_nmse == pytest.approx(result.nmse / m)
    assert result.communicate_s == pytest.approx(2 * 14e-3 + result.sent_bits / 1e10)
    assert 0 < result.limit_bits < result.received_bits / D


def test_factors_and_votes_are_counted_and_have_no_law():
    factors = rd.allreduce(d=10_000, m=8, operator=SummedPowerSGD(2, (100, 100)))

    assert (factors.nmse, factors.sent_bits) == (None, pytest.approx(2 * 7 / 8 * 32 * 2 * 200))
    assert rd.allreduce(d=100, m=8, operator=SignVote()).sent_bits == pytest.approx(2 * 7 / 8 * 4 * 100)


def test_a_sum_takes_no_other_exchange_and_codes_a_vector_each_way():
    for settings in ({"exchange": "gather"}, {"second": "qsgd:4"}):
        with pytest.raises(ValueError, match="is summed on the way and has an exchange of its own"):
            rd.allreduce(d=D, m=8, operator=SignVote(), **settings)
    coded = rd.allreduce(
        d=D, m=8, operator=SignVote(), codec=rd.Codec(encode_s_per_coordinate=2e-9, decode_s_per_coordinate=1e-9)
    )
    assert (coded.encode_s, coded.decode_s) == (pytest.approx(D * 2e-9), pytest.approx(D * 1e-9))


@pytest.mark.parametrize(
    ("text", "method"),
    [("shared_scale:12,block=512", SharedScale(12, block=512)), ("sign_vote", SignVote()), ("summed_powersgd:4", None)],
)
def test_what_is_summed_has_a_name(text, method):
    named = rd.allreduce(d=D, m=8, operator=text)

    assert named == rd.allreduce(d=D, m=8, operator=method or SummedPowerSGD(4))
    assert named.operator.partition(":")[0] == text.partition(":")[0]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"operator": "shared_scal:12"}, "unknown operator 'shared_scal'.*try shared_scale"),
        ({"operator": "shared_scale:words=12"}, "has no field 'words'; fields: word_bits, block"),
        ({"operator": "shared_scale:4"}, "got word_bits = 4 for m = 8 ranks"),
        ({"operator": "qsgd:4", "second": "sign_vote", "exchange": "two_shot"}, "sign_vote is summed on the way"),
    ],
)
def test_wrong_sums_are_refused_in_words(given, text):
    with pytest.raises(ValueError, match=text):
        rd.allreduce(d=D, m=8, **given)


def test_a_codec_that_is_measured_counts_for_sums():
    result = rd.allreduce(d=10_000, m=8, operator="shared_scale:12", codec="measured")

    assert result.encode_s > 0
    assert result.decode_s > 0


@pytest.mark.parametrize(("exchange", "m"), [("gather", 4), ("two_shot", 4), ("two_shot", 64)])
def test_the_limit_is_that_of_any_exchange(exchange, m):
    result = rd.allreduce(d=D, m=m, operator="tcdq:omega=0.01", exchange=exchange)

    assert result.limit_bits == mean_exchange_rate(m=m, nmse=result.nmse)
    assert result.limit_bits > 1.3 * mean_received_rate(m=m, nmse=result.nmse)
    assert result.exact_bits == 2 * (1 - 1 / m) * 32


def test_for_two_workers_and_large_errors_the_limit_is_that_of_the_cut():
    for m, omega in ((2, 0.1), (4, 0.6)):
        result = rd.allreduce(d=D, m=m, operator=f"tcdq:omega={omega}", exchange="gather")
        assert result.limit_bits == mean_received_rate(m=m, nmse=result.nmse)


@pytest.mark.parametrize("word_bits", [8, 12])
def test_integers_are_summed_in_as_few_bits_as_any_exchange_needs(word_bits):
    """What is sent above the limit of an exact sum are the blocks' scales."""
    result = rd.allreduce(d=D, m=8, operator=SharedScale(word_bits, block=512))

    assert result.exact_bits == 2 * 7 / 8 * word_bits
    assert result.sent_bits / D - result.exact_bits == pytest.approx(2 * 7 / 8 * 32 * math.ceil(D / 512) / D)
    dense = rd.allreduce(d=D, m=8, operator="identity")
    assert dense.sent_bits / D == dense.exact_bits
