"""Bits for layers: the law of equal slope, the budget, the error against one constant for all, and each claim."""

import numpy as np
import pytest

import ratedist as rd
from bounds.claims import Unbiased
from bounds.limits import feedback_water_filling, unbiased_water_filling
from operators import TCDQ, Key, TopK, WaterFilling, for_bits
from operators.allocation import COARSE, FINE, Members, allocate
from operators.combinators.scope import LayerOperators, LayerWise
from operators.laws import Budget, check

SIZES, SCALES = (64, 640, 6400), (10.0, 1.0, 0.1)
RNG = np.random.default_rng(0)
LAYERS = [scale * RNG.standard_normal(d) for d, scale in zip(SIZES, SCALES, strict=True)]
X = np.concatenate(LAYERS).astype(np.float32)
VARIANCES = [float(np.mean(np.square(layer.astype(np.float32), dtype=np.float64))) for layer in LAYERS]


def law_bits(operators):
    """The Gaussian limits of the constants, headers and gaps left out."""
    return sum(d * np.log2(1 + 1 / op.claim(d).omega) / 2 for op, d in zip(operators, SIZES, strict=True))


def memory_bits(operators):
    return sum(d * -np.log2(op.claim(d).alpha) / 2 for op, d in zip(operators, SIZES, strict=True))


def error_of(operator, draws=3):
    keys = [Key(0, step=step) for step in range(draws)]
    decoded = [operator.decode(operator.encode(X, key=key), d=X.size, key=key).numpy() for key in keys]
    return float(np.mean([np.sum((y - X.astype(np.float64)) ** 2) for y in decoded]))


def test_constants_are_those_of_the_certified_law():
    operators = allocate(Members(TCDQ(), FINE), VARIANCES, SIZES, 7104, law_bits)
    certified = unbiased_water_filling(VARIANCES, SIZES, 7104).constants
    assert [op.omega for op in operators] == pytest.approx([c.midpoint for c in certified], rel=2e-3)
    assert 7104 * 0.999 <= law_bits(operators) <= 7104


def test_contractive_constants_are_those_of_the_certified_law_of_memory():
    family = TCDQ(form="contractive")
    operators = allocate(Members(family, FINE), VARIANCES, SIZES, 7104, memory_bits)
    certified = feedback_water_filling([v * d for v, d in zip(VARIANCES, SIZES, strict=True)], SIZES, 7104).constants
    alphas = [op.claim(d).alpha for op, d in zip(operators, SIZES, strict=True)]
    assert alphas == pytest.approx([c.midpoint for c in certified], rel=2e-3)


def test_a_coarse_grid_is_as_good_within_one_percent():
    """What the hook uses: its error at the same bits is nearly the least."""
    operators = allocate(Members(TCDQ(), COARSE), VARIANCES, SIZES, 7104, law_bits)
    error = sum(d * v * op.omega for d, v, op in zip(SIZES, VARIANCES, operators, strict=True))
    least = unbiased_water_filling(VARIANCES, SIZES, law_bits(operators)).error
    assert least.lo <= error <= least.hi * 1.01


def test_the_gain_of_the_note_is_reached_in_real_messages():
    """1, 10^-2 and 10^-4 of one variance: the law gains 52 over one omega for all at 1 bit; headers cost a part."""
    filled = for_bits("tcdq", 2.0, like=X, layers=SIZES)
    assert isinstance(filled, LayerOperators)
    bits = filled.encode(X, key=Key(0)).bits
    assert 0.99 * 2.0 * X.size <= bits <= 2.0 * X.size
    one = min(
        (LayerWise(TCDQ(omega=2.0**-k), SIZES) for k in np.arange(2, 6, 0.125)),
        key=lambda op: abs(op.encode(X, key=Key(0)).bits - bits),
    )
    law = unbiased_water_filling(VARIANCES, SIZES, law_bits(filled.operators))
    gain = law.equal.midpoint / law.error.midpoint
    assert error_of(one) / error_of(filled) == pytest.approx(gain, rel=0.15)
    assert gain > 40


def test_each_layer_claims_its_own_constant_and_the_whole_the_worst():
    filled = for_bits("tcdq", 2.0, like=X, layers=SIZES)
    claims = [op.claim(d) for op, d in zip(filled.operators, SIZES, strict=True)]
    assert all(isinstance(claim, Unbiased) and claim.tight for claim in claims)
    assert len({claim.omega for claim in claims}) == 3
    assert filled.claim(X.size) == Unbiased(max(claim.omega for claim in claims), tight=False)


@pytest.mark.parametrize("layer", range(3))
def test_the_claim_of_each_layer_is_judged_by_itself(layer):
    """Each operator keeps its claim; the claim of a layer with half the omega is refuted."""
    operator = for_bits("tcdq", 2.0, like=X, layers=SIZES).operators[layer]
    budget, laws = Budget.quick().untimed(), ("distortion",)
    assert check(operator, budget=budget, seed=8, laws=laws).ok
    assert not check(operator, claim=Unbiased(operator.omega / 2), budget=budget, seed=8, laws=laws).ok


def test_a_layer_is_sent_as_its_operator_sends_it_alone():
    filled = for_bits("tcdq", 2.0, like=X, layers=SIZES)
    key = Key(3)
    decoded = np.split(filled.decode(filled.encode(X, key=key), d=X.size, key=key).numpy(), np.cumsum(SIZES)[:-1])
    for number, (operator, part) in enumerate(zip(filled.operators, np.split(X, np.cumsum(SIZES)[:-1]), strict=True)):
        own = key.fold_in(number)
        assert (decoded[number] == operator.decode(operator.encode(part, key=own), d=part.size, key=own).numpy()).all()


def test_measure_and_compare_show_the_gain():
    """Both take operators of layers; the plain family stands beside them."""
    filled, one = for_bits("tcdq", 2.0, like=X, layers=SIZES), LayerWise(TCDQ(omega=0.0712), SIZES)
    point = rd.measure(filled, X, draws=1)
    assert (point.operator, point.kind, point.claim) == (
        "tcdq, 3 layers",
        "unbiased",
        f"unbiased, omega <= {filled.claim(X.size).omega:.4g}",
    )
    rows = [row.measured for row in rd.compare([filled, one, "tcdq"], X, bits=2, draws=1).rows]
    assert rows[0] == point
    assert rows[0].bits < rows[1].bits
    assert rows[1].nmse > 40 * rows[0].nmse


def test_layers_without_energy_and_all_zero_vectors_have_operators():
    operators = allocate(Members(TCDQ(), COARSE), [1.0, 0.0, 1.0], SIZES, 7104, law_bits)
    assert operators[1].omega > 1000 * operators[0].omega
    (first, *others) = allocate(Members(TCDQ(), COARSE), [0.0] * 3, SIZES, 7104, law_bits)
    assert {first} == set(others)


@pytest.mark.parametrize(
    ("family", "settings", "sentence"),
    [
        ("tcdq", {"layers": (7000, 103), "like": X}, "with the sum d = 7104"),
        ("tcdq", {"layers": (), "like": X}, "with the sum d = 7104"),
        ("tcdq", {"layers": SIZES}, "got like = None: pass a gradient"),
        ("eden", {"layers": SIZES, "like": X}, "must claim a constant"),
        ("topk", {"layers": (1,) * 10, "like": X[:10]}, "bits must be at least"),
    ],
)
def test_what_cannot_be_assigned_is_said(family, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        for_bits(family, 2.0, **settings)


@pytest.mark.parametrize("settings", [{"bits": 0}, {"bits": float("nan")}, {"bits": 2, "every": 0}])
def test_a_rule_out_of_range_is_refused(settings):
    with pytest.raises(ValueError, match="must be a"):
        WaterFilling(**settings)


def test_operators_must_fit_the_layers():
    with pytest.raises(ValueError, match="one for each layer; got 1 for 2"):
        LayerOperators(TopK(k=1), (1, 2), (TopK(k=1),))
    with pytest.raises(ValueError, match="one kind of randomness"):
        LayerOperators(TopK(k=1), (1, 2), (TopK(k=1), TCDQ()))
