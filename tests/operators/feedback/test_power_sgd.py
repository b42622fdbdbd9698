"""PowerSGD against a plain oracle; its warm start finds singular vectors, is stuck without help, loses nothing."""

import io

import numpy as np
import pytest
import torch

from operators import Key, LowRank, PowerSGD
from operators.feedback.power_sgd import NUDGE, nudged
from operators.quantisers.thin_products import unit_columns

from ..rotations import gaussian


def stream(d, steps, seed=0):
    return torch.randn(steps, d, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rank", [1, 2])
def test_every_message_equals_the_oracle_on_the_same_state(rank):
    """Float64 with numpy's QR: P P^T does not depend on the signs that it leaves open."""
    m, n, feedback = 5, 8, PowerSGD(rank, (5, 8))
    state = feedback.init(40)
    for t, x in enumerate(stream(40, 25)):
        key, start = Key(0, step=t), state["start"].double().numpy()
        fresh = np.array(gaussian(key, n * rank)).reshape(n, rank) / np.sqrt(n)
        wanted = (x + state["residual"]).double().numpy().reshape(m, n)
        columns = wanted @ (start + NUDGE * fresh if t else fresh)
        p = np.linalg.qr(columns)[0]
        p *= np.sign((p * columns).sum(axis=0))  # Gram-Schmidt leaves each vector on the side of its column
        state, message = feedback.encode(state, x, key=key)
        decoded = feedback.decode({}, message, d=40)[1].numpy().reshape(m, n)
        assert decoded == pytest.approx(p @ (p.T @ wanted), abs=1e-4)
        assert state["residual"].numpy().reshape(m, n) == pytest.approx(wanted - p @ (p.T @ wanted), abs=1e-4)
        turned = wanted.T @ p
        assert state["start"].numpy() == pytest.approx(turned / np.linalg.norm(turned, axis=0), abs=1e-4)


def test_decoded_sum_plus_residual_is_the_input_sum():
    d, steps, feedback = 60, 200, PowerSGD(2)
    state, total, xs = feedback.init(d), torch.zeros(d, dtype=torch.float64), stream(d, steps)
    for t, x in enumerate(xs):
        state, message = feedback.encode(state, x, key=Key(0, step=t))
        total += feedback.decode({}, message, d=d)[1]
    assert torch.allclose(total + state["residual"], xs.double().sum(0), atol=steps * 2**-19)


def test_warm_start_finds_the_leading_singular_vector_of_a_slowly_changing_matrix():
    """A cold start captures part of the energy; iterations on one matrix, residual aside, capture the best share."""
    rng, operator = np.random.default_rng(0), LowRank(1, (12, 12))
    basis = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    spectrum = 0.6 ** np.arange(12)
    x = ((basis * spectrum) @ basis.T).reshape(-1).astype(np.float32)
    best = 1 / (spectrum**2).sum()
    q, captured = np.zeros((12, 1)), []
    for t in range(12):
        p, factor = operator.factors(x, nudged(q, Key(1, step=t)))
        captured.append(float((p.T @ x.reshape(12, 12)).astype(float).__pow__(2).sum() / (x @ x)))
        q = unit_columns(factor.astype(float)).astype(float)
    assert captured[0] < 0.95 * best
    assert captured[-1] > (1 - 2e-4) * best


def test_warm_start_alone_never_leaves_an_invariant_direction():
    """diag(1, h, ..): from e_2 the error stays 1/(1 + h^2), and error feedback alone leaves e_1 unsent for ever."""
    h, operator = 0.5, LowRank(1, (5, 5))
    matrix = np.zeros((5, 5), np.float32)
    matrix[0, 0], matrix[1, 1] = 1, h
    q, owed = np.eye(5)[:, 1:2], np.zeros((5, 5), np.float32)
    for _ in range(50):
        wanted = matrix + owed
        p, factor = operator.factors(wanted.reshape(-1), q)
        owed, q = wanted - p @ factor.T, unit_columns(factor.astype(float)).astype(float)
        assert float(((matrix - p @ (p.T @ matrix)) ** 2).sum() / (matrix**2).sum()) == pytest.approx(1 / (1 + h * h))
    assert owed[0, 0] == 50


def test_nudge_lets_error_feedback_send_what_an_unlucky_start_never_would():
    feedback, matrix = PowerSGD(1, (5, 5)), torch.zeros(5, 5)
    matrix[0, 0], matrix[1, 1] = 1, 0.5
    state, sizes = {**feedback.init(25), "start": torch.eye(5)[:, 1:2].clone()}, []
    for t in range(600):
        state, _ = feedback.encode(state, matrix.reshape(-1), key=Key(4, step=t))
        sizes.append(float(state["residual"].norm()))
    assert max(sizes) < 300
    assert max(sizes[500:]) < 10


def test_zero_and_deficient_matrices_give_no_nan_and_new_directions():
    feedback = PowerSGD(3)
    state = feedback.init(64)
    for t, x in enumerate([torch.zeros(64), torch.ones(64), torch.zeros(64), *stream(64, 3)]):
        state, message = feedback.encode(state, x, key=Key(0, step=t))
        assert feedback.decode({}, message, d=64)[1].isfinite().all()
        assert all(value.isfinite().all() for value in state.values())
    assert (state["start"].norm(dim=0) > 0.99).all()


def test_state_goes_on_after_it_was_stored():
    feedback, xs = PowerSGD(2), stream(50, 6)
    state = feedback.init(50)
    for t in range(3):
        state, _ = feedback.encode(state, xs[t], key=Key(0, step=t))
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    buffer.seek(0)
    restored = torch.load(buffer, weights_only=True)
    for t in range(3, 6):
        state, message = feedback.encode(state, xs[t], key=Key(0, step=t))
        restored, again = feedback.encode(restored, xs[t], key=Key(0, step=t))
        assert torch.equal(message.payload, again.payload)


def test_short_vectors_are_sent_whole_and_wrong_shapes_refused():
    state, message = PowerSGD().encode(PowerSGD().init(3), torch.tensor([1.0, -2, 3]), key=Key(0))
    assert PowerSGD().decode({}, message, d=3)[1].tolist() == [1, -2, 3]
    assert not state["residual"].any()
    with pytest.raises(ValueError, match="holds 6 entries"):
        PowerSGD(1, (2, 3)).init(7)
    with pytest.raises(ValueError, match="rank must be at least 1"):
        PowerSGD(0)


def test_first_messages_are_exact_and_owe_nothing_and_later_ones_are_those_of_a_fresh_start():
    d, exact = 40, 3
    feedback, plain = PowerSGD(1, (5, 8), exact_steps=exact), PowerSGD(1, (5, 8))
    state, fresh = feedback.init(d), plain.init(d)
    for t, x in enumerate(stream(d, 6)):
        state, message = feedback.encode(state, x, key=Key(0, step=t))
        decoded = feedback.decode({}, message, d=d)[1]
        if t < exact:
            assert (message.bits, torch.equal(decoded, x), state["residual"].any()) == (32 * d, True, False)
            continue
        fresh, same = plain.encode(fresh, x, key=Key(0, step=t))
        assert torch.equal(message.payload, same.payload)
        assert all(torch.equal(state[name], value) for name, value in fresh.items())
    assert feedback.bits(d).worst_case == 32 * d
    assert plain.bits(d).exact == 32 * 13


@pytest.mark.parametrize("steps", [-1, 1.5, True])
def test_a_number_of_exact_steps_that_is_none_is_refused(steps):
    with pytest.raises(ValueError, match=f"exact_steps .*; got exact_steps = {steps}"):
        PowerSGD(exact_steps=steps)
