"""Every mode between real processes, against a plain numpy simulation of the same W."""

import numpy as np
import pytest
import torch

from gpu_validation.averaging.mixing import Elastic, Full, Sampled, hypercube, ring, zeta
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.simulated import InProcessTransport
from operators import Key
from operators.random import normal
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(120)
M, D, ROUNDS = 4, 7, 3
DTYPES = {"float64": np.float64, "float32": np.float32}
MODES = {
    "full": Full(),
    "elastic": Elastic(0.3),
    "ring": ring(M),
    "hypercube": hypercube(M),
    "sampled": Sampled(2, Key(5)),
}


def movement(rank, round_index, dtype):
    return normal(Key(1, step=round_index, rank=rank), D).astype(dtype)


class Vector(torch.nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.x = torch.nn.Parameter(torch.ones(D, dtype=getattr(torch, dtype)))


def mixed_in_processes(place):
    """Per mode and dtype the models after every round, and the bytes sent and predicted."""
    found = {}
    for name, mode in MODES.items():
        for dtype in DTYPES:
            model = Vector(dtype)
            averaging = PeriodicAveraging(model, schedule=1, mixing=mode)
            path = []
            for round_index in range(ROUNDS):
                with torch.no_grad():
                    model.x += torch.from_numpy(movement(place.rank, round_index, DTYPES[dtype]))
                averaging.step()
                path.append(model.x.detach().clone())
            found[name, dtype] = path, averaging.transport.payload_bytes, averaging.transport.predicted_bytes
    return found


@pytest.fixture(scope="module")
def reports():
    return in_ranks(mixed_in_processes, processes=M)


def simulated(name, dtype):
    """Shape (rounds, m, d): X <- W X in float64, stored in the models' dtype after every round."""
    X = np.ones((M, D), dtype)
    anchor = np.ones(D, dtype)
    path = []
    for round_index in range(ROUNDS):
        X = X + np.stack([movement(rank, round_index, dtype) for rank in range(M)])
        W = MODES[name].matrix(M, round_index)
        Z = X.astype(np.float64)
        if name == "elastic":
            mean = ((((Z[0] + Z[1]) + Z[2]) + Z[3]) / M).astype(dtype).astype(np.float64)
            alpha, old = MODES[name].alpha, anchor.astype(np.float64)
            X = (Z - alpha * (Z - old)).astype(dtype)
            anchor = (old + M * alpha * (mean - old)).astype(dtype)
        else:
            rows = []
            for i in range(M):
                round_losses = [W[i, j] * Z[j] for j in range(M) if W[i, j]]
                total = round_losses[0]
                for part in round_losses[1:]:
                    total = total + part
                rows.append(total)
            X = np.stack(rows).astype(dtype)
        path.append(X)
    return np.array(path)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MODES)
def test_processes_give_what_numpy_gives_with_the_same_matrix(reports, name, dtype):
    found = np.stack([report[name, dtype][0] for report in reports], axis=1)

    np.testing.assert_array_equal(found, simulated(name, DTYPES[dtype]))


@pytest.mark.parametrize("name", MODES)
def test_every_byte_is_predicted(reports, name):
    for dtype in DTYPES:
        sent = [report[name, dtype][1] for report in reports]
        assert sum(sent) == reports[0][name, dtype][2] > 0


@pytest.mark.parametrize("mode", [Full(), Elastic(0.3), ring(M), ring(2), ring(7), hypercube(8)], ids=repr)
def test_matrices_are_doubly_stochastic_and_symmetric(mode):
    W = mode.matrix(len(mode.weights) if hasattr(mode, "weights") else M)

    np.testing.assert_allclose(W.sum(axis=0), 1, rtol=0, atol=1e-15)
    np.testing.assert_allclose(W.sum(axis=1), 1, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(W, W.T)


@pytest.mark.parametrize("name", ["full", "elastic", "ring", "hypercube"])
def test_an_update_is_one_multiplication_by_the_matrix(name):
    mode, rng = MODES[name], np.random.default_rng(3)
    X, anchor = rng.standard_normal((M, D)), rng.standard_normal(D)
    owns = [torch.from_numpy(row) for row in X]

    blended = mode.mix(InProcessTransport(M), owns, 0)
    state = {"anchor": torch.from_numpy(anchor)}
    updated = [mode.update(state, own, arrived, M) for own, arrived in zip(owns, blended, strict=True)]
    found = np.stack([model.numpy() for _, model in updated])

    if name == "elastic":
        found = np.vstack([found, updated[0][0]["anchor"].numpy()])
        X = np.vstack([X, anchor])
    # each entry is at most 5 products of numbers below 4 and as many sums
    np.testing.assert_allclose(found, mode.matrix(M) @ X, rtol=0, atol=10 * 4 * 2.0**-52)
    np.testing.assert_allclose(found.mean(axis=0), X.mean(axis=0), rtol=0, atol=10 * 4 * 2.0**-52)


def test_zeta_is_nothing_for_full_averaging_and_everything_without_any():
    assert zeta(Full().matrix(5)) < 1e-15
    assert zeta(np.eye(5)) == pytest.approx(1, abs=1e-15)
    assert zeta(np.ones((1, 1))) == 0
