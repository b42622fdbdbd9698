"""Vectors in pieces: the message, and the vector, that they have as a whole, in bounded memory."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from operators import CorruptMessage, Key, Message, OneBitSGD, all_operators, parse, specification
from operators.bits import bitstream
from operators.coding import sparse_runs
from operators.pieces import RUN, InPieces
from tests.pooled import pooled

MORE = (
    *("qsgd:7,code=fixed", "qsgd:7,norm=max,code=fixed", "qsgd:7,bucket=100,code=fixed", "terngrad:scale=16.0"),
    *("qsgd:4,code=dense", "qsgd:4,code=flag,norm=max", "qsgd:127,norm=max", "qsgd:1,bucket=5000"),
    *("hard_threshold:2.5", "hard_threshold:threshold=0.5,most=0.001", "vqsgd:1000"),
    *("sparse_dithering:1e-06", "arithmetic_sparse_dithering:0.001", "qsgd:4,bucket=70001", "qsgd:4,bucket=65536"),
    *("qsgd:4,norm=max,bucket=100000,code=dense",),
)
EXAMPLES = [
    specification(example)
    for cls in all_operators().values()
    if issubclass(cls, InPieces)
    for example in cls.examples()
    if not example.whole_only
]
OPERATORS = (*EXAMPLES, *MORE)
LONG = 2 * RUN + 4096 + 37  # three runs, the last no whole tile
NEXT_TO_BORDERS = (1, 2, 7, 8, 63, 64, 65, 4095, 4096, 4097, RUN - 1, RUN, RUN + 1, 2 * RUN)


def vector(d, scale=1.0):
    return scale * torch.randn(d, generator=torch.Generator().manual_seed(d)).clamp(-16, 16)


def vectors(d):
    """A vector, and what is seldom: zero, a negligible one, one coordinate at either end or within, equal ones."""
    numbers = torch.arange(d)
    yield from (vector(d), torch.zeros(d), vector(d, 1e-42), vector(d, 1e-42) + (numbers == d - 1), -torch.ones(d))
    yield from (vector(d, 1e-22) - (numbers == 0).float(), -(numbers == d // 2).float())


def agrees(text, x, lengths):
    """The message of pieces of these lengths, over and over, and what is decoded in pieces."""
    operator, d, key = parse(text), x.numel(), Key(3)
    whole = operator.encode(x, key=key)
    turns = (lengths * (d // sum(lengths) + 1))[: d + 1]
    ends = np.minimum(np.cumsum(turns), d)

    def pieces():
        return (x[start:end] for start, end in zip((0, *ends), ends, strict=False) if end > start)

    message = operator.encode_pieces(pieces, d=d, key=key)
    assert message.bits == whole.bits
    assert torch.equal(message.payload, whole.payload)
    decoded = torch.cat(list(operator.decode_pieces(message, d=d, key=key)))
    assert torch.equal(decoded, operator.decode(whole, d=d, key=key))


def test_the_formats_that_permit_it_are_these_at_least():
    names = {name for name, cls in all_operators().items() if issubclass(cls, InPieces)}
    assert names >= {
        *("block_integer", "cast", "identity", "klevel", "natural", "natural_dithering"),
        *("qsgd", "scaled_sign", "signsgd", "terngrad", "hard_threshold", "e8", "one_bit_sgd", "vqsgd"),
        *("topk", "randomk", "scaled_randomk", "sparse_dithering", "randomised_sparse_dithering", "tcdq"),
        *("arithmetic_sparse_dithering", "spherical_compression", "unbiased_spherical_compression"),
    }


@pytest.mark.every(4)
@pooled("text", OPERATORS)
def test_messages_at_the_borders_of_runs_are_those_of_the_whole(text):
    for d in NEXT_TO_BORDERS:
        for x in vectors(d):
            agrees(text, x, (max(1, d // 7), max(1, d // 3)))


@pytest.mark.every(8)
@pooled("text", OPERATORS)
@example(d=4096 + 37, shares=[1e-6], scale=1.0)  # pieces of one coordinate
@example(d=4096 + 37, shares=[7 / 4096], scale=1.0)
@example(d=LONG, shares=[1.0], scale=1.0)  # one piece of several runs
@given(
    d=st.sampled_from([1, 8, 4095, 4097, RUN - 1, RUN + 1, LONG]),
    shares=st.lists(st.floats(0.02, 1), min_size=1, max_size=5),
    scale=st.sampled_from([0.0, 1e-42, 1.0]),
)
@settings(max_examples=max(10, settings().max_examples // 15))  # for each of some 80 operators
def test_message_does_not_depend_on_where_pieces_end(text, d, shares, scale):
    agrees(text, vector(d, scale), tuple(max(1, int(share * d)) for share in shares))


@pooled("text", OPERATORS)
def test_every_run_has_words_and_scales_of_its_own(text):
    """All runs alike: fields that began anew with each run would repeat."""
    operator, d = parse(text), 3 * RUN * 15
    x = torch.ones(d) * 0.3
    x[0], x[-1] = 1.0, -1.0
    message = operator.encode_pieces(lambda: x.split(RUN), d=d, key=Key(3))
    assert torch.equal(message.payload, operator.encode(x, key=Key(3)).payload)


@pooled("text", OPERATORS)
def test_runs_may_be_empty(text):
    """One entry in the first run, two in the last but one: what comes between is counted over several runs."""
    x = torch.zeros(5 * RUN + 11)
    x[3], x[4 * RUN + 5], x[4 * RUN + 4099] = 1.0, -2.0, 2.0
    agrees(text, x, (RUN, 3 * RUN))


@pooled("text", OPERATORS)
def test_damage_is_found_in_pieces_where_it_is_found_in_the_whole(text):
    operator, d = parse(text), RUN + 4097
    message, rng = operator.encode(vector(d), key=Key(3)), np.random.default_rng(0)
    for _ in range(20):
        payload = message.payload.clone()
        place = int(rng.choice([rng.integers(payload.numel()), rng.integers(min(8, payload.numel()))]))
        payload[place] = int(rng.integers(256))
        damaged = Message(payload, message.bits)
        assert outcome(lambda m=damaged: torch.cat(list(operator.decode_pieces(m, d=d, key=Key(3))))) == outcome(
            lambda m=damaged: operator.decode(m, d=d, key=Key(3))
        )


@pooled("text", OPERATORS)
def test_what_is_cut_off_or_left_over_is_found(text):
    operator, d = parse(text), RUN + 4097
    message = operator.encode(vector(d), key=Key(3))
    lengths = {8, 31, 32, 100, message.bits // 2, message.bits - 33, message.bits - 1, message.bits + 8}
    for bits in {n for n in lengths if 0 < n <= message.bits + 8} - {message.bits}:
        payload = torch.cat([message.payload, message.payload.new_zeros(1)])[: (bits + 7) // 8].clone()
        payload[-1] &= 255 << (-bits % 8) & 255
        with pytest.raises(CorruptMessage):
            list(operator.decode_pieces(Message(payload, bits), d=d, key=Key(3)))


@pooled("text", OPERATORS)
def test_windows_may_be_too_short(text, monkeypatch):
    """The decoder takes a longer one, and begins its run again."""
    operator, x = parse(text), vector(LONG)
    message = operator.encode(x, key=Key(3))
    monkeypatch.setattr(bitstream, "LEAST", 4)
    monkeypatch.setattr(bitstream, "AHEAD", 0.01)
    decoded = torch.cat(list(operator.decode_pieces(message, d=LONG, key=Key(3))))
    assert torch.equal(decoded, operator.decode(message, d=LONG, key=Key(3)))


def outcome(decoded):
    """What is decoded, as bytes, or that it is refused."""
    try:
        return decoded().numpy().tobytes()
    except CorruptMessage:
        return "refused"


@pytest.mark.parametrize("bucket", ["", ",bucket=100", ",bucket=70001"])
@pytest.mark.parametrize("code", ["sparse", "dense", "flag", "fixed"])
def test_a_largest_coordinate_below_its_norm_is_damage(code, bucket):
    """The Euclidean norm in the place of the largest magnitude."""
    d = 2 * RUN
    message = parse(f"qsgd:4,code={code}{bucket}").encode(vector(d), key=Key(3))
    with pytest.raises(CorruptMessage):
        list(parse(f"qsgd:4,norm=max,code={code}{bucket}").decode_pieces(message, d=d))


def test_a_rice_parameter_that_no_encoder_chooses_is_damage(monkeypatch):
    operator, x = parse("hard_threshold:1.0"), vector(LONG)
    whole = operator.encode(x, key=Key(3))
    monkeypatch.setattr(sparse_runs._Gaps, "parameter", property(lambda gaps: int(gaps.costs.argmin()) + 1))
    message = operator.encode_pieces(lambda: [x], d=LONG, key=Key(3))
    monkeypatch.undo()
    assert message.bits > whole.bits
    with pytest.raises(CorruptMessage, match="Rice parameter"):
        list(operator.decode_pieces(message, d=LONG))


MEASURED = (
    *("klevel:k=16", "qsgd:7,code=fixed", "terngrad", "natural", "qsgd:16", "qsgd:4,code=dense", "qsgd:4,bucket=512"),
    *("qsgd:4,bucket=200001", "topk:0.01", "topk:0.5", "randomk:0.3"),
    *("hard_threshold:0.5", "hard_threshold:threshold=0.01,most=0.1", "e8", "one_bit_sgd", "vqsgd", "sparse_dithering"),
    *("randomised_sparse_dithering", "arithmetic_sparse_dithering", "spherical_compression"),
    "unbiased_spherical_compression",
)


@pytest.mark.every(4)
@pytest.mark.parametrize("text", MEASURED)
def test_memory_is_that_of_the_message_and_a_few_runs(text):
    d, operator = 64 * RUN, parse(text)
    piece = vector(RUN)

    def pieces():
        return (piece for _ in range(d // RUN))

    operator.encode_pieces(lambda: [piece], d=RUN, key=Key(3))  # the loops are compiled
    tracemalloc.start()
    message = operator.encode_pieces(pieces, d=d, key=Key(3))
    encoding = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    total = sum(float(part.sum()) for part in operator.decode_pieces(message, d=d, key=Key(3)))
    decoding = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(total)
    assert encoding < 1.125 * message.nbytes + 24 * 4 * RUN  # the vector has 64 times 4 RUN bytes
    assert decoding < message.nbytes + 24 * 4 * RUN


@pytest.mark.parametrize("text", ["hard_threshold:0.5", "sparse_dithering", "randomised_sparse_dithering"])
def test_other_numbers_at_the_second_reading_are_noticed(text):
    """Where parts of the message were measured for those of the first one."""
    x, readings = vector(LONG), []

    def pieces(changed):
        readings.append(None)
        return [x if len(readings) < changed else x.flip(0) * torch.linspace(0.1, 1, LONG)]

    parse(text).encode_pieces(lambda: pieces(99), d=LONG, key=Key(3))
    last = len(readings)
    readings.clear()
    with pytest.raises(ValueError, match="same numbers at every call"):
        parse(text).encode_pieces(lambda: pieces(last), d=LONG, key=Key(3))


@pytest.mark.parametrize("lengths", [(5,), (5, 6)])
def test_another_number_of_coordinates_is_refused(lengths):
    with pytest.raises(ValueError, match="must have d = 10 coordinates in total; got"):
        parse("klevel").encode_pieces(lambda: [torch.ones(n) for n in lengths], d=10, key=Key(0))


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="index 1"):
        parse("klevel").encode_pieces(lambda: [torch.tensor([0.0, float("nan")])], d=2, key=Key(0))


def test_what_cannot_be_cut_is_refused_with_the_remedy():
    operator = OneBitSGD(shape=(2, 2))
    with pytest.raises(ValueError, match="shape = None"):
        operator.encode_pieces(lambda: [torch.ones(4)], d=4, key=Key(0))
    with pytest.raises(ValueError, match="shape = None"):
        list(operator.decode_pieces(operator.encode(torch.ones(4), key=Key(0)), d=4))


@pooled("text", OPERATORS)
def test_no_coordinates_and_empty_pieces_are_refused(text):
    operator = parse(text)
    with pytest.raises(ValueError, match="d >= 1"):
        operator.encode_pieces(list, d=0, key=Key(0))
    with pytest.raises(ValueError, match="d >= 1"):
        list(operator.decode_pieces(Message(torch.zeros(0, dtype=torch.uint8), 0), d=0, key=Key(0)))
    with pytest.raises(ValueError, match="at least one entry"):
        operator.encode_pieces(lambda: [torch.ones(4), torch.ones(0)], d=4, key=Key(0))


@pytest.mark.parametrize("text", ["e8", "tcdq"])
def test_shared_randomness_needs_the_key(text):
    message = parse(text).encode(torch.ones(4), key=Key(0))
    with pytest.raises(ValueError, match="pass the encoder's key"):
        list(parse(text).decode_pieces(message, d=4))
