"""EDEN against a scalar oracle, its exact constants for d <= 64, the bias of Hadamard rotations, damage."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from bounds.claims import Contractive, NoClaim, StrictlyContractive, Unbiased
from bounds.special.lloyd_max import lloyd_max_distortion, lloyd_max_levels
from operators import DRIVE, EDEN, Key

from ..conftest import named_vectors
from ..oracles import refuses_payloads
from ..rotations import hadamard, rotated

OPERATORS = [EDEN(), EDEN(1, "mse"), EDEN(2), EDEN(3, "mse"), EDEN(8), EDEN(8, "mse")]


def mean_product(bits, d):
    """E v Q(v), v a coordinate on the sphere of radius sqrt(d), by integration."""
    levels = lloyd_max_levels(bits)
    if d == 1:
        return min(levels, key=lambda c: abs(c - 1))
    edges = [0.0] + [t for t in (levels[1:] + levels[:-1]) / 2 if 0 < t < math.sqrt(d)] + [math.sqrt(d)]
    total = along = 0.0
    for low, high in itertools.pairwise(edges):
        c = min(levels, key=lambda c, middle=(low + high) / 2: abs(c - middle))
        ends = math.acos(min(1.0, high / math.sqrt(d))), math.acos(low / math.sqrt(d))
        total += quad(lambda t: math.sin(t) ** (d - 2), *ends)[0]
        along += c * quad(lambda t: math.sqrt(d) * math.cos(t) * math.sin(t) ** (d - 2), *ends)[0]
    return along / total


def oracle(x, operator, key):
    """(codes as text, number sent, decoded values) in plain Python."""
    x, d, b = [float(v) for v in x], len(x), operator.bits_per_coordinate
    norm = math.sqrt(math.fsum(v * v for v in x))
    if norm == 0:
        return "0" * (b * d), 0.0, [0.0] * d
    exponent = math.frexp(norm)[1]
    z = rotated([math.ldexp(v, -exponent) for v in x], key)
    unit = math.sqrt(d) / math.ldexp(norm, -exponent)
    levels = [float(c) for c in lloyd_max_levels(b)]
    codes = [min(range(2**b), key=lambda j, v=v: abs(levels[j] - v * unit)) for v in z]
    q = [levels[j] for j in codes]
    along, square = math.fsum(c * v for c, v in zip(q, z, strict=True)), math.fsum(c * c for c in q)
    if operator.scale == "mse":
        f = math.ldexp(along / square, exponent)
    elif d <= 64:
        f = norm / math.sqrt(d) / mean_product(b, d)
    else:
        f = math.ldexp(math.ldexp(norm, -exponent) ** 2 / along, exponent)
    back = rotated(q, key, forward=False)
    return "".join(f"{j:0{b}b}" for j in codes), f * math.sqrt(d), [f * v for v in back]


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
@pytest.mark.parametrize("d", [1, 2, 9, 64, 65, 100])
def test_payload_and_values_equal_the_oracle(operator, d, key, bitstring):
    for name, x in named_vectors(d):
        if d > 64 and name in ("ones", "one-hot", "two scales"):
            continue  # Hadamard transforms of these meet the threshold 0 exactly: see the next test
        message = operator.encode(x, key=key)
        text, sent, values = oracle(x, operator, key)
        assert bitstring(message)[32:] == text, name
        assert message.payload.numpy()[:4].view(">f4")[0] == pytest.approx(sent, rel=1e-6), name
        size = np.linalg.norm(np.asarray(x, float))
        assert operator.decode(message, d=d, key=key).numpy() == pytest.approx(values, abs=2e-6 * size), name
        assert message.bits == operator.bits(d).exact == 32 + operator.bits_per_coordinate * d


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
def test_error_at_large_d_is_that_of_the_scale(operator, key):
    """Unbiased: |x|^2 = <decoded, x>.  mse: the error is orthogonal to what is decoded."""
    for name, x in named_vectors(4097):
        wide = x.astype(float)
        size = wide @ wide
        if not size:
            continue
        y = operator(x, key=key).astype(float)
        inner, square = (y @ wide) / size, (y @ y) / size
        assert inner == pytest.approx(1 if operator.scale == "unbiased" else square, rel=1e-4), name


@pytest.mark.every(3)
@pytest.mark.parametrize("operator", [EDEN(), EDEN(1, "mse"), EDEN(2), EDEN(4)], ids=repr)
@pytest.mark.parametrize("d", [2, 16, 64])
def test_error_of_any_vector_has_the_claimed_mean(operator, d):
    """n = 800 keys at a one-hot and a geometric vector: mean and error within 6 standard errors."""
    n, claim = 800, operator.claim(d)
    assert claim.tight
    for x in (np.eye(d)[0], 0.5 ** np.arange(d)):
        errors = np.array([operator(x, key=Key(5, step=i)) - x for i in range(n)]) / np.linalg.norm(x)
        squares = (errors**2).sum(axis=1)
        constant = claim.omega if isinstance(claim, Unbiased) else claim.alpha
        assert abs(squares.mean() - constant) < 6 * squares.std() / math.sqrt(n)
        if isinstance(claim, Unbiased):
            assert (np.abs(errors.mean(axis=0)) < 6 * errors.std(axis=0) / math.sqrt(n) + 1e-6).all()


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
def test_hadamard_rotations_stay_biased_at_a_pair_whatever_their_number(rounds):
    """Every sign pattern of d = 2, scale |x|^2/<z, q>: the mean of one round is (1 + t^2, 0), never (1, t)."""
    x, total = [1.0, 0.5], np.zeros(2)
    for pattern in itertools.product(range(4), repeat=rounds):
        z = hadamard(x, list(pattern), rounds, True)
        q = [math.copysign(1, v) for v in z]
        f = 1.25 / (abs(z[0]) + abs(z[1]))
        total += [f * v for v in hadamard(q, list(pattern), rounds, False)]
    mean = total / 4**rounds
    if rounds == 1:
        assert mean == pytest.approx([1.25, 0], abs=1e-6)
    assert np.linalg.norm(mean - x) > 0.04


def test_constants_at_one_bit_are_the_closed_forms():
    assert EDEN().claim(2).omega == pytest.approx(math.pi**2 / 8 - 1, abs=1e-14)
    for d in (1, 2, 3, 10, 64):
        mean = math.gamma(d / 2) / (math.sqrt(math.pi) * math.gamma((d + 1) / 2))  # of |u_1|
        assert EDEN().claim(d).omega == pytest.approx(1 / (d * mean**2) - 1, abs=1e-12)
        assert EDEN(1, "mse").claim(d) == Contractive((1 - 1 / d) * (1 - 2 / math.pi), tight=True)


@pytest.mark.parametrize(("d", "published"), [(2, 4 / math.pi - 1), (4, 0.433741), (16, 0.540971), (64, 0.563639)])
def test_constant_scale_beats_the_scale_of_the_paper_under_uniform_rotations(d, published):
    """|x|^2/<z, q> has omega = d E 1/|u|_1^2 - 1, with E |g|_1^-2 = integral of t E exp(-t|g|)^d for normal g."""
    if d > 2:
        from scipy.special import erfcx

        inverse = quad(lambda t: t * erfcx(t / math.sqrt(2)) ** d, 0, np.inf, epsabs=1e-12)[0]
        assert d * (d - 2) * inverse - 1 == pytest.approx(published, abs=1e-6)
    assert EDEN().claim(d).omega < published


@pytest.mark.parametrize("bits", range(1, 9))
def test_constants_tend_to_those_of_the_normal_law(bits):
    distortion = lloyd_max_distortion(bits)
    assert EDEN(bits).claim(64).omega == pytest.approx(distortion / (1 - distortion), rel=0.05)
    assert EDEN(bits, "mse").claim(64).alpha == pytest.approx(distortion, rel=0.05)
    x = np.random.default_rng(bits).standard_normal(1 << 17)
    error = ((EDEN(bits)(x, key=Key(0)) - x) ** 2).sum() / (x @ x)
    assert error == pytest.approx(distortion / (1 - distortion), rel=0.03)


def test_above_64_coordinates_nothing_is_claimed_but_the_sure_bound_of_one_bit():
    assert isinstance(EDEN().claim(65), NoClaim)
    assert isinstance(EDEN(2, "mse").claim(65), NoClaim)
    assert EDEN(1, "mse").claim(100) == StrictlyContractive(0.99)


def test_drive_sends_the_same_messages(key):
    for scale in ("unbiased", "mse"):
        for d in (5, 300):
            x = np.random.default_rng(d).standard_normal(d)
            assert DRIVE(scale).encode(x, key=key).to_bytes() == EDEN(1, scale).encode(x, key=key).to_bytes()


def test_vectors_near_the_end_of_the_range_are_refused_by_the_encoder(key):
    for d in (2, 70):
        x = np.zeros(d, np.float32)
        x[0] = 3.4e38
        for operator in (EDEN(), EDEN(2)):
            try:
                message = operator.encode(x, key=key)
            except ValueError as error:
                assert "rescale x" in str(error)  # noqa: PT017
            else:
                assert operator.decode(message, d=d, key=key).isfinite().all()
    with pytest.raises(ValueError, match="rescale x"):
        EDEN().encode(np.full(70, 3e38, np.float32), key=key)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [((0,), "1 <= bits_per_coordinate <= 8"), ((9,), "got bits_per_coordinate = 9"), ((1, "best"), "scale must be")],
)
def test_meaningless_parameters_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        EDEN(*arguments)


@pytest.mark.parametrize(
    ("scale", "codes"),
    [(0.0, "000001"), (-1.0, "000000"), (math.inf, "000000"), (math.nan, "000000"), (1.0, "00000"), (3.3e38, "111111")],
)
def test_payload_that_nobody_sends_is_refused(scale, codes, message_of, float_field, key):
    refuses_payloads(EDEN(2), 3, message_of(float_field(scale) + codes), key=key)
