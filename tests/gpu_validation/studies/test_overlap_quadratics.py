"""The quadratic of a task: its spectrum, noise and gradients against those written down another way."""

from dataclasses import replace

import numpy as np
import pytest

from bounds.dynamics.outer import Workers
from gpu_validation.studies.overlap_problems import (
    STEP,
    TASKS,
    Trial,
    directions,
    heterogeneous,
    predicted_times,
    quadratic_of,
)
from gpu_validation.workloads import LogisticRegression
from gpu_validation.workloads.data import Bundled

SMALL = replace(TASKS["softmax"], workload=LogisticRegression(source=Bundled("iris"), batch=4, decay=1e-2), floor=0.3)


def test_curvature_and_start_are_those_of_the_problem():
    workload = SMALL.workload
    optimum = workload.optimum()
    task = replace(SMALL, floor=optimum.value)
    workers = quadratic_of(task)
    everything = np.arange(len(workload.data().train))
    _, hessian = workload.derivatives(optimum.x, everything)
    spectrum = np.linalg.eigvalsh(hessian)[::-1] + workload.decay

    kept = directions(len(spectrum))
    assert workers.eigenvalues[0, :kept] == pytest.approx(spectrum[:kept], abs=1e-5)  # L-BFGS ends beside the minimiser
    samples = np.stack([workload.derivatives(optimum.x, np.array([i]))[0] for i in everything])
    assert workers.noise[0].sum() == pytest.approx(samples.var(axis=0).sum() / workload.batch, rel=1e-4)
    gap = 0.5 * workers.eigenvalues.mean(axis=0) @ workers.start**2
    assert gap == pytest.approx(task.start - task.floor)
    assert workers.are_alike


def test_workers_with_data_of_their_own_have_minimisers_of_their_own_and_a_common_one():
    workers = quadratic_of(heterogeneous(SMALL))

    assert np.ptp(workers.centres, axis=0).max() > 0.1
    assert np.abs(workers.minimiser).max() < 1e-3


def test_seconds_are_those_of_a_scalar_that_contracts():
    workers = Workers(np.ones((4, 1)), np.zeros((4, 1)), np.zeros((4, 1)), np.ones(1))
    task = replace(SMALL, floor=SMALL.start - 0.5)  # the scalar's gap
    times = predicted_times(workers, task, "fixed tau", Trial(0.1, 4), 10)

    rounds = np.log(np.array([1 / 2, 1 / 8])) / (2 * 4 * np.log(0.9))
    steps = np.array(times) / STEP.mean_s
    assert (steps >= 14 * rounds).all()
    assert (steps <= 14.5 * (rounds + 1) * 8 / 7).all()  # until the next round's end; a mean over the last eighth
    assert predicted_times(workers, task, "fixed tau", Trial(2.5, 4), 10) == [np.inf, np.inf]
