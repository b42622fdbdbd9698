"""QUIC-FL against a scalar oracle, its exact constants for d <= 64, sure bounds above, sizes, damage."""

import math

import numpy as np
import pytest

from operators import QUICFL, Key
from operators.compressors import quic_fl
from operators.compressors.quic_fl import joined
from operators.quantisers.shared_rounding import SHARED_BITS, shared_grid

from ..conftest import named_vectors
from ..oracles import refuses_payloads
from ..plain_philox import bits32_numpy
from ..quic_fl_sender import move_of
from ..rotations import rotated


def upward(value):
    rounded = np.float32(value)
    return float(rounded if float(rounded) >= value else np.nextafter(rounded, np.float32(np.inf)))


def oracle(x, b, key, support_field, float_field):
    """(bits as text, decoded values) in plain Python."""
    x, d = [float(v) for v in x], len(x)
    norm, levels, top = upward(math.sqrt(math.fsum(v * v for v in x))), shared_grid(b).levels, float(shared_grid(b).top)
    most = min(d, int(d * 1.0001 / top**2))
    if norm == 0:
        return "0" * (32 + b * d + most.bit_length()), [0.0] * d
    exponent = math.frexp(norm)[1]
    z = rotated([math.ldexp(v, -exponent) for v in x], key.fold_in(0), rounds=1)
    unit = np.float32(math.sqrt(d) / math.ldexp(norm, -exponent))
    v = [float(np.float32(t) * unit) for t in z]
    codes, exact, mask, sent = "", "", [], []
    shared = [int(word) >> 8 * k & 255 for word in bits32_numpy(key.fold_in(2), (d + 3) // 4) for k in range(4)]
    for t, word, byte in zip(v, bits32_numpy(key.fold_in(1), d).tolist(), shared, strict=False):
        mask.append(abs(t) > top)
        if mask[-1]:
            codes, exact = codes + "0" * b, exact + float_field(t)
            sent.append(t)
            continue
        move, h = move_of(b, t), byte % 2 ** SHARED_BITS[b]
        code = move.codes[h] + (h == move.h and word / 2**32 < (t - move.low) / (move.high - move.low))
        codes += f"{code:0{b}b}"
        sent.append(float(levels[h, code]))
    count = f"{sum(mask):0{most.bit_length()}b}" if most else ""
    text = float_field(norm) + codes + count + exact + support_field(mask)
    back = rotated(sent, key.fold_in(0), forward=False, rounds=1)
    return text, [norm / math.sqrt(d) * t for t in back]


@pytest.mark.parametrize("b", [1, 2, 5])
@pytest.mark.parametrize("d", [1, 2, 9, 30, 64, 65, 300])
def test_payload_and_values_equal_the_oracle(b, d, key, bitstring, float_field, support_field):
    operator = QUICFL(b)
    for name, x in named_vectors(d):
        message = operator.encode(x, key=key)
        text, values = oracle(x, b, key, support_field, float_field)
        found, head = bitstring(message), 32 + b * d + operator.most(d).bit_length()
        assert (found[:head], len(found)) == (text[:head], len(text)), name
        size = np.linalg.norm(np.asarray(x, float))
        assert operator.decode(message, d=d, key=key).numpy() == pytest.approx(values, abs=2e-6 * size), name
        assert message.bits <= operator.bits(d).worst_case


@pytest.mark.every(3)
@pytest.mark.parametrize("b", [1, 2, 4])
@pytest.mark.parametrize("d", [2, 16, 64])
def test_error_of_any_vector_has_the_claimed_mean_and_the_mean_is_the_vector(b, d):
    """n = 400 keys at a one-hot and a geometric vector: within 6 standard errors."""
    n, claim = 400, QUICFL(b).claim(d)
    assert claim.tight
    for x in (np.eye(d)[0], 0.5 ** np.arange(d)):
        errors = np.array([QUICFL(b)(x, key=Key(5, step=i)) - x for i in range(n)]) / np.linalg.norm(x)
        squares = (errors**2).sum(axis=1)
        assert abs(squares.mean() - claim.omega) < 6 * squares.std() / math.sqrt(n)
        assert (np.abs(errors.mean(axis=0)) < 6 * errors.std(axis=0) / math.sqrt(n) + 1e-6).all()


def test_pair_that_biases_other_rotated_operators_stays_unbiased_above_64_coordinates():
    """n = 3000 keys, 6 standard errors; the error is below the bound for any rotated vector."""
    n, d, x = 3000, 65, np.zeros(65)
    x[:2] = 1, 0.9
    errors = np.array([QUICFL(2)(x, key=Key(6, step=i)) - x for i in range(n)]) / np.linalg.norm(x)
    assert (np.abs(errors.mean(axis=0)) < 6 * errors.std(axis=0) / math.sqrt(n)).all()
    assert (errors**2).sum(axis=1).mean() < QUICFL(2).claim(d).omega


@pytest.mark.parametrize(
    ("b", "nmse", "deviation"),
    [(1, 1.4654, 0.105), (2, 0.21350, 0.068), (3, 0.042638, 0.047), (4, 0.0095131, 0.032)],
)
def test_gaussian_vectors_have_the_computed_error_and_the_published_size(b, nmse, deviation, key):
    """Within 5 standard errors, from the relative deviation of 4096 coordinates.

    2048 exact entries are expected, standard deviation 45, at 32 + log2 512 + 1.44 bits each.
    """
    d = 1 << 20
    x = np.random.default_rng(0).standard_normal(d)
    assert ((QUICFL(b)(x, key=key) - x) ** 2).sum() / (x @ x) == pytest.approx(nmse, rel=5 * deviation / 16)
    assert QUICFL(b).encode(x, key=key).bits / d == pytest.approx(b + 42.4 / 512, abs=5 * 45 * 42.4 / d)


def test_clients_share_no_number():
    """The errors of two ranks at one vector are uncorrelated: n d = 2^17 products."""
    x = np.random.default_rng(0).standard_normal(1 << 17)
    a, b = (QUICFL(2)(x, key=Key(4, rank=r)) - x for r in range(2))
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / math.sqrt(x.size)


@pytest.mark.parametrize("d", [20, 64])
def test_mean_size_is_below_the_declared_one(d):
    """n = 1500 messages."""
    x, size = np.ones(d), QUICFL(2).bits(d)
    lengths = np.array([QUICFL(2).encode(x, key=Key(8, step=i)).bits for i in range(1500)])
    assert lengths.mean() + 5 * lengths.std() / math.sqrt(1500) < size.expected_upper <= size.worst_case
    assert lengths.max() <= size.worst_case


def test_bit_strings_are_joined_without_gaps():
    rng = np.random.default_rng(0)
    texts = ["".join(map(str, rng.integers(0, 2, n))) for n in (3, 0, 16, 7, 8, 1, 40)]
    parts = [(np.packbits(np.array(list(map(int, t)), np.uint8)), len(t)) for t in texts]
    payload, bits = joined(*parts)
    whole = "".join(texts)
    assert bits == len(whole)
    assert "".join(f"{byte:08b}" for byte in payload) == whole + "0" * (-len(whole) % 8)


def test_meaningless_parameters_are_refused():
    for bits in (0, 9):
        with pytest.raises(ValueError, match=f"got bits_per_coordinate = {bits}"):
            QUICFL(bits)


def test_vectors_near_the_end_of_the_range_are_refused(key):
    with pytest.raises(ValueError, match="rescale x"):
        QUICFL().encode(np.full(9, 3e38, np.float32), key=key)


@pytest.mark.parametrize(
    ("norm", "codes", "rest"),
    [
        (-1.0, "00" * 12, "0"),
        (math.inf, "00" * 12, "0"),
        (0.0, "01" + "00" * 11, "0"),
        (1.0, "00" * 12, ""),
        (1.0, "00" * 12, "00"),
        (1.0, "00" * 12, "1"),  # the exact entry is missing
        (1.0, "00" * 12, "1" + "exact 3.2" + "1111"),  # only 12 positions
        (1.0, "00" * 12, "1" + "exact 3.0" + "0000"),  # below T
        (1.0, "00" * 12, "1" + "exact 3.6" + "0000"),  # above sqrt(12)
        (1.0, "01" + "00" * 11, "1" + "exact 3.2" + "0000"),  # a code beside the exact entry
    ],
)
def test_payload_that_nobody_sends_is_refused(norm, codes, rest, message_of, float_field, key):
    for value in ("3.2", "3.0", "3.6"):
        rest = rest.replace(f"exact {value}", float_field(float(value)))
    refuses_payloads(QUICFL(2), 12, message_of(float_field(norm) + codes + rest), key=key)


@pytest.mark.parametrize("operator", [QUICFL(1), QUICFL(3)], ids=repr)
def test_pieces_of_any_length_give_the_same_message(operator, key, monkeypatch):
    x = np.random.default_rng(0).standard_normal(1003).astype(np.float32)
    whole = operator.encode(x, key=key)
    monkeypatch.setattr(quic_fl, "PIECE", 64)
    pieces = operator.encode(x, key=key)
    assert pieces.bits == whole.bits
    assert pieces.payload.tolist() == whole.payload.tolist()
