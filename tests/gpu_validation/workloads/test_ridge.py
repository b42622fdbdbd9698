"""Ridge regression against linear algebra done another way."""

import numpy as np
import pytest
import torch

from gpu_validation.workloads import Bundled, Iid, Ridge

CASES = [Ridge(), Ridge(source=Bundled("breast_cancer"), decay=1e-4), Ridge(decay=1.0)]
ids = ["diabetes", "breast_cancer", "strong"]


def table(workload):
    """Features with ones, and targets, without the code under test."""
    train = workload.data().train
    targets = train.targets.double().numpy()
    return np.c_[train.inputs.numpy(), np.ones(len(targets))], 2 * targets - 1 if workload.data().classes else targets


@pytest.mark.parametrize("workload", CASES, ids=ids)
def test_the_minimum_is_that_of_least_squares_with_extra_rows(workload):
    A, b = table(workload)
    n, d = A.shape
    extended = np.r_[A, np.sqrt(n * workload.decay) * np.eye(d)]
    x, *_ = np.linalg.lstsq(extended, np.r_[b, np.zeros(d)], rcond=None)
    value = 0.5 * np.square(extended @ x - np.r_[b, np.zeros(d)]).sum() / n

    found = workload.optimum()
    np.testing.assert_allclose(found.x, x, rtol=1e-8, atol=1e-10)
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.error < 1e-12


@pytest.mark.parametrize("workload", CASES, ids=ids)
def test_constants_are_the_extreme_eigenvalues(workload):
    A, _ = table(workload)
    singular = np.linalg.svd(A, compute_uv=False) ** 2 / len(A)
    constants = workload.constants()

    assert singular[0] + workload.decay == pytest.approx(constants.L, rel=1e-12)
    assert singular[-1] + workload.decay == pytest.approx(constants.mu, rel=1e-9)
    assert constants.gap == pytest.approx(workload.evaluate(workload.model())[0] - workload.optimum().value)
    assert not constants.exact
    assert "grows with x" in constants.reason


def test_suboptimality_is_the_quadratic_form_of_the_error():
    workload = Ridge()
    model = workload.model()
    off = np.linspace(-1, 1, 11)
    torch.nn.utils.vector_to_parameters(torch.from_numpy(workload.optimum().x + 1e-3 * off), model.parameters())
    A, _ = table(workload)

    exact = 0.5e-6 * off @ (A.T @ A / len(A) + workload.decay * np.eye(11)) @ off
    assert workload.suboptimality(model) == pytest.approx(exact, rel=1e-9)


def test_without_mini_batches_there_is_no_noise_and_a_theorem_may_judge():
    constants = Ridge(batch=None).constants()

    assert constants.exact
    assert constants.sigma2 == 0


def test_heterogeneity_of_a_split_is_measured_at_the_minimum():
    workload = Ridge(batch=None, split=Iid(4))
    A, b = table(workload)
    x = workload.optimum().x
    by_hand = []
    for rank in range(4):
        rows = workload.shard(rank)
        weight = 4 / len(A)
        by_hand.append(weight * A[rows].T @ (A[rows] @ x - b[rows]) + workload.decay * x)

    constants = workload.constants()
    assert constants.heterogeneity == pytest.approx(np.mean([g @ g for g in by_hand]), rel=1e-9)
    np.testing.assert_allclose(np.mean(by_hand, axis=0), 0, atol=1e-12)
    assert not constants.exact


def test_labels_of_two_classes_become_signs_and_more_are_refused():
    workload = Ridge(source=Bundled("breast_cancer", held_out=0.2), decay=0.01)
    model = workload.model()
    torch.nn.utils.vector_to_parameters(torch.from_numpy(workload.optimum().x), model.parameters())

    assert workload.accuracy(model) > 0.9
    assert Ridge().accuracy(Ridge().model()) is None
    with pytest.raises(ValueError, match="digits has 10 classes"):
        Ridge(source=Bundled("digits")).optimum()


def test_a_minimum_without_decay_cannot_be_certified():
    with pytest.raises(ValueError, match="decay must be > 0"):
        Ridge(decay=0.0)
