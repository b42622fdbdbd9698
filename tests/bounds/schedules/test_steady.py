"""Rounds where progress has ended: against the law of a mean that relaxes."""

import math

import pytest

from bounds.schedules import GradientRetention, Measured, Observation
from bounds.schedules.steady import steady_period


def cosine(relaxation):
    """Between successive movements of x' = exp(-s) x + noise, from its stationary covariances."""
    stays = math.exp(-relaxation)
    movement2, product = 2 * (1 - stays), -((1 - stays) ** 2)
    return product / movement2


@pytest.mark.parametrize("relaxation", [0.01, 0.1, 1.0, 2.0])
@pytest.mark.parametrize("workers", [2, 8])
def test_the_round_relaxes_by_half_a_worker_th(relaxation, workers):
    tau = steady_period(turn=cosine(relaxation), tau=24.0, workers=workers)

    assert tau * relaxation / 24.0 == pytest.approx(1 / (2 * workers), rel=1e-9)


def test_progress_shortens_nothing_and_a_round_that_forgets_all_still_has_a_number():
    assert steady_period(turn=0.0, tau=8.0, workers=2) == steady_period(turn=0.9, tau=8.0, workers=2) == math.inf
    assert 0 < steady_period(turn=-1.0, tau=64.0, workers=2) == steady_period(turn=-0.5, tau=64.0, workers=2)


def after(*, bend2, curve, turn, rounds=6):
    """The state after rounds of 0.01 s a step and 0.08 s an averaging, probes and turns being as given."""
    rule = GradientRetention()
    state, step = rule.init(), 0
    for _ in range(rounds):
        seen = Measured(0.01 * state.tau, 0.0, 0.08, 0.0, 1.0, 0.0, bend2=bend2, curve=curve, turn=turn, workers=4)
        state, tau = rule(state, Observation(0.0, step, 0.1, measured=seen if step else None))
        step += tau
    return state


def test_only_a_bent_loss_without_progress_shortens_rounds():
    long = after(bend2=0.0, curve=1.0, turn=-0.4).tau

    assert long > 50
    assert after(bend2=0.04, curve=1.0, turn=-0.4).tau < 10
    assert after(bend2=0.04, curve=1.0, turn=0.4).tau == long  # progress
    assert after(bend2=0.04, curve=1.0, turn=None).tau == long  # nothing known of it
    assert after(bend2=1e-6, curve=1.0, turn=-0.4).tau == long  # too little
    assert after(bend2=4.0, curve=1.0, turn=-0.4).tau == long  # more than any convex loss
    assert after(bend2=0.04, curve=-1.0, turn=-0.4).tau == long
