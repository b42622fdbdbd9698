"""TCDQ: error exactly omega |x|^2 for every x, no bias, the promised rate, both forms, the budget, refusals."""

import math

import numpy as np
import pytest
import torch

from bounds.claims import Contractive, Unbiased
from operators import TCDQ, CorruptMessage, Key, Message
from operators.laws import Budget, check

from ..oracles import refuses_payloads


def adversarial(d):
    rng = np.random.default_rng(d)
    i = np.arange(d)
    yield "one-hot", np.where(i == d // 3, -5.0, 0)
    yield "two-sparse", np.where(i == 0, 1.0, np.where(i == d - 1, 0.9, 0))
    yield "ones", np.ones(d)
    yield "cauchy", rng.standard_cauchy(d)
    yield "grid", rng.integers(-3, 4, d).astype(float)
    yield "two scales", np.where(i % 2, 1e-3, 1.0)


def errors(operator, x, draws):
    x = x.astype(np.float32)
    out = np.empty((draws, x.size))
    for t in range(draws):
        out[t] = operator(x, key=Key(1, step=t)).astype(np.float64) - x
    return out / np.linalg.norm(x.astype(np.float64))


@pytest.mark.every(4)
@pytest.mark.parametrize(
    "operator",
    [
        TCDQ(omega=0.2),
        TCDQ(omega=6.0),
        TCDQ(omega=6.0, knee=0.7),
        TCDQ(omega=0.01, states=64),
        TCDQ(omega=0.1, states=256),
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", [name for name, _ in adversarial(4)])
def test_mean_squared_error_is_omega_for_every_vector(operator, name):
    """40 draws of 4096 coordinates: .4 % standard error at most within a draw's spread; 1 % is .99 .. 1.01."""
    e = errors(operator, dict(adversarial(4096))[name], 150 if operator.omega > 1 else 40)
    squares = (e**2).sum(axis=1) / operator.omega
    assert abs(squares.mean() - 1) < max(0.01, 5 * squares.std() / math.sqrt(len(e)))
    if operator.omega < 1:
        assert 0.99 < squares.mean() < 1.01


@pytest.mark.parametrize("operator", [*TCDQ.examples()[:4], TCDQ(omega=0.1, states=256)], ids=repr)
def test_decoded_mean_equals_input(operator):
    """n = 1500: |mean error|^2 n / omega has mean 1; a bias of a fifth of the error would double it."""
    for _, x in adversarial(200):
        e = errors(operator, x, 300)
        statistic = (e.mean(axis=0) ** 2).sum() * len(e) / operator.omega
        assert statistic < 1 + 6 * math.sqrt(2 / min(200, 64)) + (operator.omega > 1)


@pytest.mark.parametrize(
    ("states", "omega", "most"),
    [
        (1, 1.0, 0.262),
        (4, 1.0, 0.107),
        (8, 1.0, 0.092),
        (8, 0.0667, 0.092),
        (8, 0.0039, 0.092),
        (64, 0.3333, 0.063),
        (128, 0.0667, 0.048),
        (256, 1.0, 0.055),
        (256, 0.0039, 0.043),
    ],
)
def test_gap_to_the_limit_with_real_bytes(states, omega, most):
    x = np.random.default_rng(1).standard_normal(200_000).astype(np.float32)
    operator = TCDQ(omega=omega, states=states)
    message = operator.encode(x, key=Key(1))
    error = operator.decode(message, d=x.size, key=Key(1)).numpy().astype(float) - x
    nmse = (error @ error) / (x.astype(float) @ x)
    assert nmse == pytest.approx(omega, rel=0.02)
    assert message.bits / x.size - math.log2(1 + 1 / omega) / 2 < most


def test_claims_of_both_forms():
    assert TCDQ(omega=3.0).claim(5) == Unbiased(3.0, tight=True)
    assert TCDQ(omega=3.0, form="contractive").claim(5) == Contractive(0.75, tight=True)


def test_contractive_form_is_the_unbiased_one_shrunk():
    x, key = np.random.default_rng(0).standard_normal(500).astype(np.float32), Key(3)
    shrunk = TCDQ(omega=3.0, form="contractive")(x, key=key)
    assert shrunk == pytest.approx(TCDQ(omega=3.0)(x, key=key) / 4, rel=1e-6)


@pytest.mark.parametrize("bits", [0.05, 0.4, 1.0, 3.0, 6.0])
def test_budget_is_met_within_one_percent_on_average(bits):
    operator = TCDQ.for_bits(bits)
    x = np.random.default_rng(8).standard_normal((4, 1 << 17)).astype(np.float32)
    sent = np.mean([operator.encode(v, key=Key(5, step=t)).bits for t, v in enumerate(x)]) / (1 << 17)
    assert sent == pytest.approx(bits, rel=0.01)


def test_budget_of_a_given_vector_is_met():
    x = np.random.default_rng(2).standard_t(3, 30_000).astype(np.float32)
    operator = TCDQ.for_bits(2.0, like=x)
    assert operator.encode(x, key=Key(1)).bits / x.size == pytest.approx(2.0, rel=0.01)
    assert operator.omega < TCDQ.for_bits(2.0).omega


def test_peaky_vectors_send_fewer_coordinates_more_finely():
    rng = np.random.default_rng(4)
    x = (rng.standard_normal(60_000) * np.exp(rng.standard_normal(60_000))).astype(np.float32)
    found, plain = TCDQ.for_bits(0.4, like=x), TCDQ.for_bits(0.4)
    assert (found.knee, plain.knee) == (0.7, None)
    at_the_usual_knee = TCDQ(omega=found.omega).encode(x, key=Key(1)).bits
    assert found.encode(x, key=Key(1)).bits < 0.98 * at_the_usual_knee


def test_budget_that_a_vector_never_costs_is_refused():
    with pytest.raises(ValueError, match="sparse"):
        TCDQ.for_bits(9.0, like=np.eye(1, 5000)[0])


def test_budget_below_the_header_is_refused():
    with pytest.raises(ValueError, match="header"):
        TCDQ.for_bits(0.05, like=np.ones(100))


def test_slowly_varying_scales_are_learnt_from_decoded_values():
    """Scales over two decades in waves of 600: one mixture spends at least .3 bit more than mixtures by context."""
    from operators.tcdq import codec
    from operators.tcdq.model import plan_of
    from operators.tcdq.trellis import seeds

    d = 40_000
    x = np.random.default_rng(4).standard_normal(d) * np.exp(2.3 * np.sin(np.arange(d) / 100))
    sent = [codec.encode(x.astype(np.float32), plan_of(d, 0.01, 8), seeds(Key(1)), mixtures=m).size for m in (1, 16)]
    assert 8 * (sent[0] - sent[1]) / d > 0.3


@pytest.mark.parametrize(
    "operator",
    [
        pytest.param(op, id=repr(op), marks=pytest.mark.slow if op.omega in (0.004, 9.0) else pytest.mark.thorough)
        for op in (*TCDQ.examples(), TCDQ(omega=0.1, states=256))
    ],
)
def test_laws_hold(operator):
    budget = Budget(bias=0.25, draws=60, evaluations=64, sizes=(1, 65), drawn_sizes=(65,), drawn=1, search=2).untimed()
    report = check(operator, budget=budget, seed=8)
    assert report.ok, str(report)


def test_negligible_vectors_send_the_norm_only():
    for x in (np.zeros(9), np.full(9, 2.0**-127)):
        message = TCDQ().encode(x.astype(np.float32), key=Key(0))
        assert message.bits == 32
        assert not TCDQ().decode(message, d=9, key=Key(0)).any()


def test_scaling_by_a_power_of_two_scales_the_result_exactly():
    x, key = np.random.default_rng(1).standard_normal(3000).astype(np.float32), Key(2)
    assert np.array_equal(TCDQ()(x * np.float32(2.0**70), key=key), TCDQ()(x, key=key) * np.float32(2.0**70))


def payload(*parts):
    data = b"".join(parts)
    return Message(torch.tensor(list(data), dtype=torch.uint8), 8 * len(data))


ONE = bytes.fromhex("3f800000")
BASE = (1 << 31).to_bytes(8, "big")


@pytest.mark.parametrize(
    ("d", "message"),
    [
        (3, payload()),
        (3, payload(ONE)),
        (3, payload(bytes(4), bytes(1))),  # zero, and more
        (3, payload(bytes.fromhex("80000000"))),  # minus zero
        (3, payload(bytes.fromhex("7fc00000"), BASE)),
        (3, payload(bytes.fromhex("00000001"), BASE)),  # a norm below 2^-126
        (3, payload(ONE, bytes(8))),  # a state below the base
        (3, payload(ONE, b"\xff" * 8)),
        (3, payload(ONE, BASE, bytes(3))),  # no whole word
        (2000, payload(ONE, b"\x02", BASE)),  # an unknown model
        (2000, payload(ONE, b"\x03\x00\x01\x01\xff", BASE)),  # more low bits than the Gaussian has
        (2000, payload(ONE, b"\x01\x00\x02", BASE)),  # the first class has no mixture
        (2000, payload(ONE, b"\x01\x00\x01\x00", BASE)),  # a mixture without weights
        (2000, payload(ONE, b"\x01\x00\x01\x21" + b"\xff" * 33, BASE)),  # too many
        (2000, payload(ONE, b"\x01\x00\x01\x02\x01\xff")),  # no states
        (2000, payload(ONE, b"\x01\x00\x01\x02\xff\x00", BASE)),  # a last weight of zero
        (2000, payload(ONE, b"\x01\x00\x01\x01\x07", BASE)),  # the largest weight is not 255
    ],
)
def test_payload_that_nobody_sends_is_refused(d, message):
    refuses_payloads(TCDQ(), d, message, key=Key(0))


def test_message_of_broken_bytes_is_refused():
    message = TCDQ().encode(np.ones(20), key=Key(0))
    bits = message.bits - 1
    data = message.payload.clone()
    data[-1] &= 0xFE
    with pytest.raises(CorruptMessage, match="whole number"):
        TCDQ().decode(Message(data, bits), d=20, key=Key(0))


def test_result_beyond_binary32_is_refused_at_the_encoder():
    with pytest.raises(ValueError, match="rescale"):
        TCDQ(omega=100.0).encode(np.full(4, 1e38, np.float32), key=Key(0))


@pytest.mark.parametrize(
    "arguments", [{"omega": 0}, {"omega": 1e9}, {"omega": math.nan}, {"states": 3}, {"form": "x"}, {"knee": -1.0}]
)
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        TCDQ(**arguments)


def test_too_many_coordinates_are_refused():
    with pytest.raises(ValueError, match="2\\^32"):
        TCDQ().claim(1) and TCDQ().bits((1 << 32) + 1)


@pytest.mark.parametrize("bits", [0, 11, math.nan])
def test_meaningless_budgets_are_refused(bits):
    with pytest.raises(ValueError, match="bits"):
        TCDQ.for_bits(bits)
