"""Low rank factors against a scalar oracle, the proved constant at its witness and off it, rank deficiency, damage."""

import math

import numpy as np
import pytest

from bounds.claims import Contractive, StrictlyContractive
from operators import Key, LowRank
from operators.quantisers.thin_products import orthonormal

from ..conftest import named_vectors
from ..oracles import refuses_payloads
from ..rotations import gaussian


def dot(a, b):
    return math.fsum(s * t for s, t in zip(a, b, strict=True))


def oracle(x, rank, m, n, key):
    """P Q^T in plain Python: Gram-Schmidt on the columns of M G."""
    x = [float(v) for v in x] + [0.0] * (m * n - len(x))
    rows, g = [x[i * n : (i + 1) * n] for i in range(m)], gaussian(key, n * rank)
    basis = []
    for j in range(rank):
        v = [dot(row, g[j::rank]) for row in rows]
        size = math.sqrt(dot(v, v))
        for _ in range(2):
            for p in basis:
                along = dot(p, v)
                v = [a - along * b for a, b in zip(v, p, strict=True)]
        left = math.sqrt(dot(v, v))
        if left > 1e-5 * size:
            basis.append([a / left for a in v])
    decoded = [[0.0] * n for _ in range(m)]
    for p in basis:
        q = [dot(p, column) for column in zip(*rows, strict=True)]
        decoded = [[a + p[i] * b for a, b in zip(row, q, strict=True)] for i, row in enumerate(decoded)]
    return [v for row in decoded for v in row]


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("d", [30, 64, 65, 100])
def test_values_equal_the_oracle_where_the_rank_is_clear(rank, d, key):
    operator = LowRank(rank)
    m, n = operator.matrix_shape(d)
    for name, x in named_vectors(d):
        if rank == 2 and name in ("geometric", "sparse"):
            continue  # a second column near rounding: the next test
        size = np.linalg.norm(np.asarray(x, float))
        assert operator(x, key=key) == pytest.approx(np.array(oracle(x, rank, m, n, key))[:d], abs=3e-5 * size), name
        assert operator.encode(x, key=key).bits == operator.bits(d).exact == 32 * rank * (m + n)


@pytest.mark.parametrize("rank", [1, 3])
def test_error_is_what_lies_outside_the_span_for_every_vector(rank, key):
    d, operator = 100, LowRank(rank)
    for _, x in named_vectors(d):
        matrix = x.astype(float).reshape(10, 10)
        p, _ = operator.factors(x, np.array(gaussian(key, 10 * rank)))
        outside = matrix - p.astype(float) @ (p.T.astype(float) @ matrix)
        size = float((matrix**2).sum())
        error = ((operator(x, key=key).astype(float) - x) ** 2).sum()
        assert error == pytest.approx((outside**2).sum(), abs=1e-5 * size)
        assert error <= size * (1 + 1e-5)


@pytest.mark.every(2)
@pytest.mark.parametrize(("rank", "m", "n"), [(1, 4, 4), (2, 6, 9), (3, 12, 8), (1, 3, 40)])
def test_flat_spectrum_reaches_the_constant_and_no_spectrum_exceeds_it(rank, m, n):
    """n = 1500 keys, 6 standard errors; equal singular values in a random basis, then decaying ones."""
    draws, operator, rng = 1500, LowRank(rank, (m, n)), np.random.default_rng(m)
    k = min(m, n)
    left, right = (np.linalg.qr(rng.standard_normal((s, s)))[0][:, :k] for s in (m, n))
    alpha = operator.claim(m * n).alpha
    assert alpha == 1 - rank / k
    for spectrum in (np.ones(k), 0.7 ** np.arange(k)):
        x = ((left * spectrum) @ right.T).reshape(-1)
        errors = [((operator(x, key=Key(2, step=i)) - x) ** 2).sum() / (x @ x) for i in range(draws)]
        spare = 6 * np.std(errors) / math.sqrt(draws)
        if spectrum[-1] == 1:
            assert abs(np.mean(errors) - alpha) < spare + 1e-6
        else:
            assert np.mean(errors) < alpha


@pytest.mark.parametrize("d", [7, 8, 64, 65, 1000])
def test_witness_has_a_flat_spectrum(d):
    operator = LowRank()
    m, n = operator.matrix_shape(d)
    x = operator.witness(d)
    matrix = np.append(x, np.zeros(m * n - d)).reshape(m, n)
    assert np.linalg.svd(matrix)[1] == pytest.approx(np.ones(m))


@pytest.mark.parametrize(("d", "m", "n"), [(1, 1, 1), (2, 1, 2), (12, 3, 4), (64, 8, 8), (65, 8, 9), (4097, 64, 65)])
def test_matrix_is_near_square_and_holds_the_vector(d, m, n):
    assert LowRank().matrix_shape(d) == (m, n)
    assert m * n - d < n


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_short_vectors_are_sent_whole(d, key):
    x = np.random.default_rng(d).standard_normal(d).astype(np.float32)
    assert LowRank().claim(d) == StrictlyContractive(0.0, tight=True)
    assert (LowRank()(x, key=key) == x).all()
    assert LowRank().bits(d).exact == 32 * d


def test_vector_shapes_of_layers_are_kept():
    """A row of 50 would take 51 numbers as factors, so all 50 are sent."""
    assert LowRank(1, (1, 50)).bits(50).exact == 32 * 50
    assert LowRank(2, (10, 30)).bits(300).exact == 32 * 2 * 40
    assert LowRank(2, (10, 30)).claim(300) == Contractive(0.8)
    with pytest.raises(ValueError, match=r"holds 300 entries; got d = 301"):
        LowRank(2, (10, 30)).bits(301)


def test_basis_is_orthonormal_and_dependent_columns_are_zero():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((9, 2)) * [1, 1e-8]
    columns = np.column_stack([a[:, 0], a[:, 1], a[:, 0] - 3 * a[:, 1], np.zeros(9), rng.standard_normal(9)])
    basis = orthonormal(columns)
    assert basis.T @ basis == pytest.approx(np.diag([1, 1, 0, 0, 1]), abs=1e-14)
    assert basis @ (basis.T @ columns) == pytest.approx(columns, abs=1e-14)


def test_matrix_of_lower_rank_is_sent_exactly_and_without_nan(key):
    x = np.outer(np.arange(1, 11), np.arange(3, 13)).astype(np.float32).reshape(-1)
    for scale in (1.0, 2.0**-120, 2.0**90):
        decoded = LowRank(4)(x * np.float32(scale), key=key)
        assert decoded == pytest.approx(x * scale, rel=1e-5)


def test_meaningless_parameters_and_huge_vectors_are_refused(key):
    for arguments in ((0,), (1, (0, 3)), (1, (3,))):
        with pytest.raises(ValueError, match=r"rank must be|shape must be"):
            LowRank(*arguments)
    with pytest.raises(ValueError, match="rescale x"):
        LowRank().encode(np.full(100, 1e38, np.float32), key=key)


@pytest.mark.parametrize(
    "values", [[2.0] * 20, [0.1] * 10 + [math.inf] * 10, [0.1] * 19, [0.9] + [0] * 9 + [math.nan] * 10]
)
def test_payload_that_nobody_sends_is_refused(values, message_of, float_field):
    refuses_payloads(LowRank(), 100, message_of("".join(map(float_field, values))))
