"""RaBitQ against a scalar oracle that tries every grid point, its constants, its symmetry about x, damage."""

import itertools
import math

import numpy as np
import pytest

from bounds import limits
from bounds.claims import NoClaim, Unbiased
from bounds.special.lloyd_max import lloyd_max_distortion
from operators import DRIVE, Key, RaBitQ
from operators.coding.fixed_width import unpack_fixed
from operators.quantisers.sphere_grid import mean_square_tangent, pack_direction

from ..conftest import named_vectors
from ..oracles import refuses_payloads
from ..rotations import haar_matrix


def nearest_direction(v, bits):
    """The grid point that is packed; its two sums are those that are returned."""
    v, payload = v.astype(np.float32), np.zeros((bits * v.size + 7) // 8, np.uint8)
    sums = pack_direction(v, bits, payload)
    c = unpack_fixed(payload, bits, v.size) - (2**bits - 1) / 2
    assert sums == pytest.approx((math.fsum(v.astype(float) * c), math.fsum(c * c)), rel=1e-14)
    return c


def best_direction(v, bits):
    """The largest <v, c>/|c| over all points."""
    values = [j - (2**bits - 1) / 2 for j in range(2**bits)]
    return max(
        sum(a * c for a, c in zip(v, point, strict=True)) / math.sqrt(sum(c * c for c in point))
        for point in itertools.product(values, repeat=len(v))
    )


@pytest.mark.parametrize(("bits", "d"), [(1, 1), (1, 5), (2, 1), (2, 2), (2, 4), (3, 3), (4, 2), (8, 1)])
def test_no_grid_point_has_a_smaller_angle(bits, d):
    rng = np.random.default_rng([bits, d])
    for v in [*rng.standard_normal((20, d)), np.ones(d), np.eye(d)[0], rng.standard_cauchy(d)]:
        c = nearest_direction(v, bits)
        v = v.astype(np.float32).astype(float)
        assert v @ c / math.sqrt(c @ c) == pytest.approx(best_direction(v, bits), rel=1e-12)


@pytest.mark.parametrize("operator", [RaBitQ(), RaBitQ(2), RaBitQ(3)], ids=repr)
@pytest.mark.parametrize("d", [1, 2, 9, 70])
def test_payload_and_values_equal_the_oracle(operator, d, key, bitstring):
    b = operator.bits_per_coordinate
    for name, x in named_vectors(d):
        message, wide = operator.encode(x, key=key), x.astype(float)
        assert message.bits == operator.bits(d).exact == 32 + b * d
        y = operator.decode(message, d=d, key=key).numpy().astype(float)
        norm = np.linalg.norm(wide)
        if not norm:
            assert not y.any()
            assert "1" not in bitstring(message)
            continue
        rotation, fields = haar_matrix(key, d), bitstring(message)[32:]
        c = np.array([int(fields[b * i : b * i + b], 2) - (2**b - 1) / 2 for i in range(d)])
        z = rotation @ (wide / norm)
        if d <= 2:
            assert z @ c / math.sqrt(c @ c) == pytest.approx(best_direction(z, b), rel=1e-5), name
        assert message.payload.numpy()[:4].view(">f4")[0] == pytest.approx(norm * math.sqrt(c @ c) / (z @ c), rel=1e-5)
        assert y == pytest.approx(norm * (rotation.T @ c) / (z @ c), abs=1e-5 * norm), name


@pytest.mark.parametrize("operator", [RaBitQ(), RaBitQ(4)], ids=repr)
@pytest.mark.parametrize("d", [2, 64, 200, 300])
def test_inner_product_with_x_itself_has_no_error(operator, d, key):
    for name, x in named_vectors(d):
        wide = x.astype(float)
        if wide.any():
            assert operator(x, key=key).astype(float) @ wide == pytest.approx(wide @ wide, rel=1e-4), name


@pytest.mark.parametrize(("bits", "d"), [(1, 2), (1, 33), (2, 2), (2, 33), (4, 33)])
def test_error_of_any_vector_is_unbiased_and_within_the_claim(bits, d):
    """n = 300 keys at a pair and at a geometric vector: mean, and error, within 5 standard errors."""
    n, operator = 300, RaBitQ(bits)
    claim = operator.claim(d)
    assert isinstance(claim, Unbiased)
    assert claim.tight == (bits == 1)
    for x in (np.where(np.arange(d) < 2, 1 / (1 + np.arange(d)), 0), 0.5 ** np.arange(d)):
        x = x.astype(np.float32)
        errors = np.array([operator(x, key=Key(5, step=i)) - x for i in range(n)], float) / np.linalg.norm(x)
        squares = (errors**2).sum(axis=1)
        spread = 5 * squares.std() / math.sqrt(n)
        assert squares.mean() < claim.omega + spread
        assert bits > 1 or squares.mean() > claim.omega - spread
        assert (np.abs(errors.mean(axis=0)) < 5 * errors.std(axis=0) / math.sqrt(n) + 1e-6).all()


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("d", [4, 20, 256])
def test_bound_of_several_bits_lies_above_the_average_of_the_best_points(bits, d):
    """n = 200 Gaussian vectors; the bound tends to pi/2 times the uniform quantiser's error, .1188 and .01154."""
    rng = np.random.default_rng([bits, d])
    tangents = []
    for v in rng.standard_normal((200, d)):
        c = nearest_direction(v, bits)
        tangents.append((v @ v) * (c @ c) / (v @ c) ** 2 - 1)
    assert np.mean(tangents) < mean_square_tangent(bits, d)
    if d == 256:
        uniform = {2: 0.1188, 4: 0.01154}[bits]
        assert mean_square_tangent(bits, d) == pytest.approx(math.pi / 2 * uniform, rel=0.02)
        assert np.mean(tangents) > lloyd_max_distortion(bits)  # a uniform grid is no better than the best levels


def test_one_bit_is_drive_with_the_scale_of_its_paper(key):
    """omega tends to pi/2 - 1 for both; the constant scale of DRIVE is a little better up to 64 coordinates."""
    assert RaBitQ().claim(64).omega > DRIVE().claim(64).omega
    assert RaBitQ().claim(256).omega == pytest.approx(math.pi / 2 - 1, rel=0.005)
    x = np.random.default_rng(0).standard_normal(300).astype(np.float32)
    assert RaBitQ()(x, key=key) == pytest.approx(DRIVE()(x, key=key), abs=1e-5)  # the same Hadamard rotation


@pytest.mark.parametrize("d", [2, 64, 256])
def test_one_bit_claims_the_bound(d):
    assert RaBitQ().claim(d).omega == pytest.approx(limits.rabitq_inner_product(d=d), rel=1e-13)


def test_above_256_coordinates_nothing_is_claimed():
    assert isinstance(RaBitQ().claim(256), Unbiased)
    assert isinstance(RaBitQ().claim(257), NoClaim)


def test_vectors_near_the_end_of_the_range_are_refused_by_the_encoder(key):
    for d in (2, 70, 300):
        x = np.zeros(d, np.float32)
        x[0] = 3.4e38
        for operator in (RaBitQ(), RaBitQ(4)):
            try:
                message = operator.encode(x, key=key)
            except ValueError as error:
                assert "rescale x" in str(error)  # noqa: PT017
            else:
                assert operator.decode(message, d=d, key=key).isfinite().all()


@pytest.mark.parametrize("bits", [0, 9, 1.5])
def test_meaningless_parameters_are_refused(bits):
    with pytest.raises(ValueError, match=f"got bits_per_coordinate = {bits}"):
        RaBitQ(bits)


@pytest.mark.parametrize(
    ("scale", "codes"),
    [(0.0, "000001"), (-1.0, "000000"), (math.inf, "000000"), (math.nan, "000000"), (1.0, "00000")],
)
def test_payload_that_nobody_sends_is_refused(scale, codes, message_of, float_field, key):
    refuses_payloads(RaBitQ(2), 3, message_of(float_field(scale) + codes), key=key)
