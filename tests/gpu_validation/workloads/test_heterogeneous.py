"""Model C: a loop and real processes end at the biased point that theory predicts."""

from contextlib import closing

import numpy as np
import pytest
import torch

from bounds.dynamics import heterogeneous
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.processes.launch import run_ranks
from gpu_validation.workloads import HeterogeneousQuadratics
from operators import Key


def test_constants_by_hand():
    workload = HeterogeneousQuadratics()
    constants = workload.constants()

    assert (constants.L, constants.sigma2, constants.mu) == (1.0, 0.0, pytest.approx(0.6))
    assert not constants.exact
    # x* = (.7/1.3, 1/1.2); gradients there (x_1 - 1, .2 x_2) and their negatives, as the mean vanishes
    assert constants.heterogeneity == pytest.approx((6 / 13) ** 2 + (1 / 6) ** 2)
    model = workload.model()
    torch.nn.utils.vector_to_parameters(torch.tensor([7 / 13, 5 / 6], dtype=torch.float64), model.parameters())
    best, norm2 = workload.evaluate(model)
    assert norm2 < 1e-30
    assert workload.evaluate(workload.model())[0] - best == pytest.approx(constants.gap)


@pytest.mark.every(2)
@pytest.mark.parametrize(("tau", "norm2"), [(2, 8.321e-5), (4, 7.431e-4), (8, 3.942e-3), (16, 1.656e-2)])
def test_a_loop_of_workers_ends_at_the_biased_point(averaged_path, tau, norm2):
    workload = HeterogeneousQuadratics()
    end = averaged_path(workload, m=2, tau=tau, steps=640)[-1]

    limit = heterogeneous.fixed_point(workload.H, workload.c, eta=workload.eta, tau=tau)
    np.testing.assert_allclose(end, limit, rtol=1e-12)
    slope = heterogeneous.gradient(workload.H, workload.c, end)
    assert slope @ slope == pytest.approx(norm2, rel=1e-3)  # a value published with the model


def _descend(place, emit):
    workload = HeterogeneousQuadratics()
    model = workload.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
    averaging = PeriodicAveraging(model, optimizer, schedule=8)
    for k in range(320):
        optimizer.zero_grad()
        workload.loss(model, key=Key(0, step=k, rank=place.rank)).backward()
        optimizer.step()
        averaging.step()
    emit(averaging.model.x.tolist())


def test_real_processes_end_at_the_biased_point():
    workload = HeterogeneousQuadratics()
    with closing(run_ranks(_descend, processes=2, hang_timeout_s=60)) as ranks:
        ends = list(ranks)

    limit = heterogeneous.fixed_point(workload.H, workload.c, eta=workload.eta, tau=8)
    assert ends[0] == ends[1]
    # deltas travel as binary32 and shrink with the distance, so that their rounding does not pile up
    np.testing.assert_allclose(ends[0], limit, rtol=1e-7)


def test_matrices_that_fit_no_problem_are_refused():
    with pytest.raises(ValueError, match=r"shapes \(m, d, d\) and \(m, d\)"):
        HeterogeneousQuadratics(centres=((0.0, 1.0),))
    with pytest.raises(ValueError, match="symmetric positive definite"):
        HeterogeneousQuadratics(hessians=(((1.0, 0.5), (0.0, 1.0)),), centres=((0.0, 1.0),))
    with pytest.raises(ValueError, match="symmetric positive definite"):
        HeterogeneousQuadratics(hessians=(((1.0, 0.0), (0.0, 0.0)),), centres=((0.0, 1.0),))
