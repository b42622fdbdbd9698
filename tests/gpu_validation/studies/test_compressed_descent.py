"""Compressed descent against its theory: exact where nothing is random, and against a scalar oracle."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bounds import theorems
from bounds.total_communication import SMALLEST
from gpu_validation.studies.compressed_descent import METHODS, descend, landmarks, methods_for
from gpu_validation.workloads import Bundled, Dirichlet, Iid, LogisticRegression, Ridge
from operators import QSGD, Identity, Key, RandomK, ScaledSign, SignSGD, TopK

RIDGE = Ridge(split=Iid(3), decay=0.1)
LOGISTIC = LogisticRegression(source=Bundled("breast_cancer"), split=Dirichlet(4, alpha=0.5), decay=0.1)


def table(workload):
    """Features with ones and targets of every worker, with its weight."""
    train = workload.data().train
    A = np.c_[train.inputs.numpy(), np.ones(len(train))]
    b = train.targets.numpy()
    parts = [workload.shard(rank) for rank in range(workload.workers)]
    return [(A[p], b[p], len(p) * workload.workers / len(A)) for p in parts]


def test_landmarks_by_linear_algebra():
    at = landmarks(RIDGE)
    local = [np.linalg.eigvalsh(w * A.T @ A / len(A))[-1] + 0.1 for A, _, w in table(RIDGE)]
    slopes = [w * A.T @ (A @ at.minimiser - b) / len(A) + 0.1 * at.minimiser for A, b, w in table(RIDGE)]

    assert max(local) == pytest.approx(at.L)
    assert at.L >= RIDGE.constants().L
    assert at.mu == RIDGE.constants().mu
    assert at.sigma2_opt == pytest.approx(np.mean([s @ s for s in slopes]))
    assert np.linalg.norm(at.minimiser) == pytest.approx(at.R0)
    np.testing.assert_allclose(np.sum(slopes, axis=0), 0, atol=1e-12)


def by_hand(workload, operator, name, steps):
    """The same three methods in plain loops, for ridge regression: (x, bits)."""
    parts, at = table(workload), landmarks(workload)
    m, d = len(parts), at.d
    claim = operator.claim(d)
    x, bits = np.zeros(d), 0

    def slope(i, x):
        A, b, weight = parts[i]
        return weight * A.T @ (A @ x - b) / len(A) + 0.1 * x

    if name == "ef21":
        eta = (1 - math.sqrt(claim.alpha)) / at.L
        h, bits = [slope(i, x) for i in range(m)], 32 * m * d
    else:
        eta = 1 / (at.L * (1 + {"dcgd": 2, "diana": 6}[name] * claim.omega / m))
        h = [np.zeros(d) for _ in range(m)]
    for k in range(steps):
        total = np.zeros(d)
        for i in range(m):
            key = Key(5, step=k, rank=i)
            message = operator.encode(slope(i, x) - h[i], key=key)
            c = operator.decode(message, d=d, key=key).numpy().astype(float)
            bits += message.bits
            total += h[i] + c
            if name == "diana":
                h[i] = h[i] + c / (1 + claim.omega)
            if name == "ef21":
                h[i] = h[i] + c
        x = x - eta * total / m
    return x, bits


@pytest.mark.parametrize(
    ("name", "operator"), [("dcgd", QSGD(levels=4)), ("diana", RandomK(k=3)), ("ef21", TopK(k=2))], ids=lambda v: str(v)
)
def test_every_method_does_what_the_plain_loop_does(name, operator):
    path = descend(RIDGE, METHODS[name], operator, steps=20, seed=5)
    x, bits = by_hand(RIDGE, operator, name, 20)
    at = landmarks(RIDGE)
    hessian = sum(w * A.T @ A / len(A) for A, _, w in table(RIDGE)) / 3 + 0.1 * np.eye(at.d)

    assert path.step == list(range(21))
    assert path.bits[-1] == bits
    assert path.gap[-1] == pytest.approx(0.5 * (x - at.minimiser) @ hessian @ (x - at.minimiser), rel=1e-6)
    if name != "diana":
        assert path.potential[-1] == pytest.approx(np.square(x - at.minimiser).sum(), rel=1e-6)


def test_without_compression_the_rate_is_that_of_gradient_descent():
    path = descend(LOGISTIC, METHODS["dcgd"], Identity(), steps=60, seed=0)
    at = landmarks(LOGISTIC)

    assert path.potential[0] == pytest.approx(at.R0**2)
    for k, potential in zip(path.step[1:], path.potential[1:], strict=True):
        at_k = {"R0": at.R0, "eta": METHODS["dcgd"].eta(at, 0.0), "mu": at.mu, "L": at.L, "m": at.m, "K": k}
        bound = theorems.dcgd(omega=SMALLEST, sigma2_opt=at.sigma2_opt, **at_k)
        assert potential <= bound * (1 + 1e-5)  # gradients travel as binary32
    assert path.bits[-1] == 60 * 4 * 31 * 32


@pytest.mark.thorough
def test_diana_reaches_the_minimum_where_plain_compression_stalls():
    operator, workload = RandomK(k=6), replace(LOGISTIC, decay=1.0)
    plain = descend(workload, METHODS["dcgd"], operator, steps=500, seed=0, every=500)
    learned = descend(workload, METHODS["diana"], operator, steps=500, seed=0, every=500)

    assert learned.gap[-1] < 1e-7
    assert plain.gap[-1] > 1e-4
    assert learned.bits[-1] == plain.bits[-1] == 500 * 4 * operator.bits(31).exact


def test_the_potential_of_diana_has_the_spread_of_the_shifts():
    at, omega = landmarks(RIDGE), RandomK(k=3).claim(11).omega
    path = descend(RIDGE, METHODS["diana"], RandomK(k=3), steps=0, seed=0)
    eta = 1 / (at.L * (1 + 2 * omega))

    assert path.potential == [pytest.approx(at.R0**2 + 4 * omega * (1 + omega) * eta**2 / 3 * at.sigma2_opt)]


def test_ef21_obeys_its_theorem_exactly_with_a_deterministic_operator():
    at, operator = landmarks(LOGISTIC), TopK(k=3)
    path = descend(LOGISTIC, METHODS["ef21"], operator, steps=200, seed=0)

    for k, mean in zip(path.step, path.gradient2, strict=True):
        level = theorems.ef21(L=at.L, gap=at.gap, alpha=operator.claim(31).alpha, epsilon=1.0) / (k + 1)
        assert mean <= level
    assert path.bits[0] == 4 * 31 * 32


def test_a_run_ends_where_it_is_told_to_and_does_not_depend_on_how_often_it_is_recorded():
    fine = descend(RIDGE, METHODS["diana"], QSGD(levels=4), steps=100, seed=1)
    coarse = descend(RIDGE, METHODS["diana"], QSGD(levels=4), steps=100, seed=1, every=30)
    target = 0.5 * fine.potential[0]
    stopped = descend(RIDGE, METHODS["diana"], QSGD(levels=4), steps=100, seed=1, until=lambda p: p <= target)

    assert coarse.step == [0, 30, 60, 90, 100]
    assert coarse.gap == [fine.gap[k] for k in coarse.step]
    assert stopped.potential == fine.potential[: len(stopped.step)]
    assert stopped.potential[-1] <= target < stopped.potential[-2]


def test_claims_choose_the_methods():
    def names(operator):
        return [method.name for method in methods_for(operator.claim(31))]

    assert names(QSGD(levels=4)) == names(Identity()) == ["dcgd", "diana"]
    assert names(TopK(k=1)) == names(ScaledSign()) == ["ef21"]
    assert names(SignSGD()) == ["plain"]
    with pytest.raises(ValueError, match="diana does not cover TopK"):
        descend(RIDGE, METHODS["diana"], TopK(k=1), steps=1, seed=0)


def test_a_problem_without_workers_is_refused():
    with pytest.raises(ValueError, match="give the workload a split"):
        landmarks(Ridge())
