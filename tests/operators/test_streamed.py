"""Vectors in pieces: the message, and the vector, that they have as a whole, in bounded memory."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators import CorruptMessage, Key, Message, all_operators, parse, specification
from operators.streamed import RUN, Streamed

MORE = ("qsgd:7,code=fixed", "qsgd:7,norm=max,code=fixed", "qsgd:7,bucket=100,code=fixed", "terngrad:scale=16.0")
EXAMPLES = [
    specification(example)
    for cls in all_operators().values()
    if issubclass(cls, Streamed)
    for example in cls.examples()
    if not example.whole_only
]
OPERATORS = (*EXAMPLES, *MORE)
LONG = 2 * RUN + 4096 + 37  # three runs, the last no whole tile


def vector(d, scale=1.0):
    return scale * torch.randn(d, generator=torch.Generator().manual_seed(d)).clamp(-16, 16)


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
    assert torch.equal(torch.cat(list(operator.decode_pieces(message, d=d))), operator.decode(whole, d=d, key=key))


def test_the_formats_that_permit_it_are_these():
    names = {name for name, cls in all_operators().items() if issubclass(cls, Streamed)}
    assert names == {
        *("block_integer", "cast", "identity", "klevel", "natural", "natural_dithering"),
        *("qsgd", "scaled_sign", "signsgd", "terngrad"),
    }


@pytest.mark.parametrize("lengths", [(1,), (7,), (LONG,)], ids=["one", "seven", "all"])
@pytest.mark.parametrize("text", OPERATORS)
def test_message_of_pieces_is_that_of_the_whole(text, lengths):
    agrees(text, vector(LONG if lengths[0] == LONG else 4096 + 37), lengths)


@pytest.mark.every(8)
@pytest.mark.parametrize("text", OPERATORS)
@given(data=st.data())
def test_message_does_not_depend_on_where_pieces_end(text, data):
    d = data.draw(st.sampled_from([1, 8, 4095, 4097, RUN - 1, RUN + 1, LONG]))
    lengths = data.draw(st.lists(st.integers(max(1, d // 50), d), min_size=1, max_size=5))
    agrees(text, vector(d, data.draw(st.sampled_from([0.0, 1e-42, 1.0]))), tuple(lengths))


@pytest.mark.parametrize("text", OPERATORS)
def test_every_run_has_words_and_scales_of_its_own(text):
    """All runs alike: fields that began anew with each run would repeat."""
    operator, d = parse(text), 3 * RUN * 15
    x = torch.ones(d) * 0.3
    x[0], x[-1] = 1.0, -1.0
    message = operator.encode_pieces(lambda: x.split(RUN), d=d, key=Key(3))
    assert torch.equal(message.payload, operator.encode(x, key=Key(3)).payload)


@pytest.mark.parametrize("text", OPERATORS)
def test_damage_is_found_in_pieces_where_it_is_found_in_the_whole(text):
    operator, d = parse(text), RUN + 4097
    message, rng = operator.encode(vector(d), key=Key(3)), np.random.default_rng(0)
    for _ in range(20):
        payload = message.payload.clone()
        place = int(rng.choice([rng.integers(payload.numel()), rng.integers(min(8, payload.numel()))]))
        payload[place] = int(rng.integers(256))
        damaged = Message(payload, message.bits)
        assert outcome(lambda m=damaged: torch.cat(list(operator.decode_pieces(m, d=d)))) == outcome(
            lambda m=damaged: operator.decode(m, d=d, key=Key(3))
        )
    with pytest.raises(CorruptMessage):
        list(operator.decode_pieces(message, d=d + 1))


def outcome(decoded):
    """What is decoded, as bytes, or that it is refused."""
    try:
        return decoded().numpy().tobytes()
    except CorruptMessage:
        return "refused"


@pytest.mark.parametrize("text", ["klevel:k=16", "qsgd:7,code=fixed", "terngrad", "natural"])
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
    total = sum(float(part.sum()) for part in operator.decode_pieces(message, d=d))
    decoding = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(total)
    assert encoding < message.nbytes + 24 * 4 * RUN  # the vector has 64 times 4 RUN bytes
    assert decoding < message.nbytes + 24 * 4 * RUN


@pytest.mark.parametrize("lengths", [(5,), (5, 6)])
def test_another_number_of_coordinates_is_refused(lengths):
    with pytest.raises(ValueError, match="d = 10 coordinates together"):
        parse("klevel").encode_pieces(lambda: [torch.ones(n) for n in lengths], d=10, key=Key(0))


def test_numbers_that_are_none_are_refused():
    with pytest.raises(ValueError, match="index 1"):
        parse("klevel").encode_pieces(lambda: [torch.tensor([0.0, float("nan")])], d=2, key=Key(0))


def test_elias_codes_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match='code = "fixed"'):
        parse("qsgd:4").encode_pieces(lambda: [torch.ones(4)], d=4, key=Key(0))
    with pytest.raises(ValueError, match='code = "fixed"'):
        list(parse("qsgd:4").decode_pieces(parse("qsgd:4").encode(torch.ones(4), key=Key(0)), d=4))
