"""TurboQuant against a scalar oracle, its exact constants for d <= 256, the bias of Hadamard rotations, damage."""

import math

import numpy as np
import pytest

from bounds import limits
from bounds.claims import Contractive, NoClaim, Unbiased
from bounds.special.lloyd_max import lloyd_max_levels
from operators import CorruptMessage, Key, TurboQuant
from operators.compressors import turboquant

from ..conftest import named_vectors
from ..rotations import gaussian, haar_matrix

OPERATORS = [TurboQuant(1), TurboQuant(2), TurboQuant(4), TurboQuant(1, "mse"), TurboQuant(3, "mse")]


def oracle(x, operator, key):
    """(fields as text, norms, decoded values), number by number."""
    x, d, b = [float(v) for v in x], len(x), operator.bits_per_coordinate
    level_bits = b - (operator.form == "prod")
    norm = math.sqrt(math.fsum(v * v for v in x))
    if norm == 0:
        return "0" * (b * d), [0.0] * (2 if level_bits and operator.form == "prod" else 1), [0.0] * d
    u, rotation = [v / norm for v in x], haar_matrix(key.fold_in(0), d)
    codes, unit = [0] * d, [0.0] * d
    if level_bits:
        levels = [float(c) for c in lloyd_max_levels(level_bits)]
        v = [math.sqrt(d) * math.fsum(row * u) for row in rotation]
        codes = [min(range(len(levels)), key=lambda j, v=v: abs(levels[j] - v)) for v in v]
        unit = [math.fsum(column * [levels[j] for j in codes]) / math.sqrt(d) for column in rotation.T]
    if operator.form == "mse":
        return "".join(f"{j:0{b}b}" for j in codes), [norm], [norm * v for v in unit]
    r = [a - c for a, c in zip(u, unit, strict=True)]
    left = math.sqrt(math.fsum(v * v for v in r))
    s = np.array(gaussian(key.fold_in(1), d * d)).reshape(d, d)
    signs = [math.fsum(row * r) > 0 for row in s]
    for i in range(d):
        total = math.fsum(s[j, i] if signs[j] else -s[j, i] for j in range(d))
        unit[i] += left * math.sqrt(math.pi / 2) / d * total
    fields = "".join(f"{2 * j + sign:0{b}b}" for j, sign in zip(codes, signs, strict=True))
    return fields, [norm, left] if level_bits else [norm], [norm * v for v in unit]


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
@pytest.mark.parametrize("d", [1, 2, 9, 65])
def test_payload_and_values_equal_the_oracle(operator, d, key, bitstring):
    for name, x in named_vectors(d):
        message = operator.encode(x, key=key)
        fields, norms, values = oracle(x, operator, key)
        assert bitstring(message)[32 * len(norms) :] == fields, name
        assert message.payload.numpy()[: 4 * len(norms)].view(">f4") == pytest.approx(norms, rel=1e-5), name
        size = np.linalg.norm(np.asarray(x, float))
        assert operator.decode(message, d=d, key=key).numpy() == pytest.approx(values, abs=1e-5 * size), name
        assert message.bits == operator.bits(d).exact == 32 * len(norms) + operator.bits_per_coordinate * d


def test_claims_are_the_bounds():
    for d in (2, 65, 256):
        for b in (1, 2, 4):
            at = {"bits_per_coordinate": b, "d": d}
            assert TurboQuant(b).claim(d) == Unbiased(limits.turboquant_inner_product(**at), tight=True)
            assert TurboQuant(b, "mse").claim(d) == Contractive(limits.turboquant_mse(**at), tight=True)
    assert TurboQuant(1).claim(1).omega == pytest.approx(math.pi / 2 - 1)  # (E|g|)^-2 E g^2 - 1
    assert isinstance(TurboQuant().claim(257), NoClaim)
    assert TurboQuant(2, "mse").mean_at(np.ones(257, np.float32)) is None


@pytest.mark.every(3)
@pytest.mark.parametrize("operator", [TurboQuant(1), TurboQuant(2), TurboQuant(3), TurboQuant(2, "mse")], ids=repr)
@pytest.mark.parametrize("d", [2, 33])
def test_error_of_any_vector_has_the_claimed_mean(operator, d):
    """n = 250 keys at a pair and at a geometric vector: mean and error within 5 standard errors."""
    n, claim = 250, operator.claim(d)
    for x in (np.where(np.arange(d) < 2, 1 / (1 + np.arange(d)), 0), 0.5 ** np.arange(d)):
        x = x.astype(np.float32)
        outputs = np.array([operator(x, key=Key(5, step=i)) for i in range(n)], float)
        mean = x if operator.form == "prod" else operator.mean_at(x)[0]
        squares = ((outputs - x) ** 2).sum(axis=1) / (x @ x)
        constant = claim.omega if operator.form == "prod" else claim.alpha
        assert abs(squares.mean() - constant) < 5 * squares.std() / math.sqrt(n)
        assert (np.abs(outputs.mean(axis=0) - mean) < 5 * outputs.std(axis=0) / math.sqrt(n) + 1e-6).all()


@pytest.mark.parametrize("b", [1, 2])
def test_no_query_exceeds_the_worst_case_and_one_bit_reaches_it(b):
    """x = e_1 at d = 8; e_2 is orthogonal to it: within 5 standard errors of 600 keys."""
    d, n = 8, 600
    x = np.eye(d, dtype=np.float32)[0]
    outputs = np.array([TurboQuant(b)(x, key=Key(9, step=i)) for i in range(n)], float)
    worst = limits.turboquant_inner_product_worst(bits_per_coordinate=b, d=d)
    for q in (np.eye(d)[1], np.ones(d) / math.sqrt(d), np.eye(d)[0]):
        z = d * (outputs @ q - x @ q) ** 2
        assert z.mean() < worst + 5 * z.std() / math.sqrt(n)
    if b == 1:
        z = d * outputs[:, 1] ** 2
        assert abs(z.mean() - math.pi / 2) < 5 * z.std() / math.sqrt(n)


def test_rotation_and_sketch_are_independent_and_damage_of_either_norm_is_seen(key, message_of, float_field):
    operator, d = TurboQuant(2), 3
    for norms, fields in [
        ((0.0, 0.0), "000001"),
        ((0.0, 1.0), "000000"),
        ((1.0, 9.0), "000000"),
        ((1.0, -1.0), "000000"),
        ((math.nan, 1.0), "000000"),
        ((1.0, math.inf), "000000"),
        ((1.0, 1.0), "00000"),
        ((3.4e38, 1.5), "000000"),
    ]:
        text = "".join(map(float_field, norms)) + fields
        with pytest.raises(CorruptMessage):
            operator.decode(message_of(text), d=d, key=key)
    assert not np.allclose(
        haar_matrix(key.fold_in(0), d), np.array(gaussian(key.fold_in(1), d * d)).reshape(d, d), atol=0.1
    )


def test_vectors_near_the_end_of_the_range_are_refused_by_the_encoder():
    for operator in OPERATORS:
        for d in (1, 70, 300):
            x = np.full(d, 3.4e38 / math.sqrt(d), np.float32)
            for step in range(5):
                key = Key(1, step=step)
                try:
                    message = operator.encode(x, key=key)
                except ValueError as error:
                    assert "rescale x" in str(error)  # noqa: PT017
                else:
                    assert operator.decode(message, d=d, key=key).isfinite().all()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [((0,), "1 <= bits_per_coordinate <= 8"), ((9,), "got bits_per_coordinate = 9"), ((1, "best"), "form must be")],
)
def test_meaningless_parameters_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        TurboQuant(*arguments)


def test_above_256_coordinates_the_error_of_most_vectors_is_the_limit():
    x = np.random.default_rng(0).standard_normal(1 << 16).astype(np.float32)
    for b in (1, 2, 3):
        error = ((TurboQuant(b)(x, key=Key(0)) - x) ** 2).sum() / (x @ x)
        left = limits.turboquant_inner_product_limit(bits_per_coordinate=b) * 2 / math.pi
        assert error == pytest.approx((math.pi / 2 - 1) * left, rel=0.03)  # the sketch's rotation has no 1/d to lose


@pytest.mark.parametrize("operator", [TurboQuant(1), TurboQuant(2), TurboQuant(4)], ids=repr)
def test_pieces_of_any_length_give_the_same_message(operator, key, monkeypatch):
    x = np.random.default_rng(0).standard_normal(1003).astype(np.float32)
    whole = operator.encode(x, key=key)
    monkeypatch.setattr(turboquant, "PIECE", 64)
    pieces = operator.encode(x, key=key)
    assert pieces.bits == whole.bits
    assert pieces.payload.tolist() == whole.payload.tolist()
