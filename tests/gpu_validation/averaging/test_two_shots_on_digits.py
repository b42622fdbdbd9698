"""The digits with eight simulated workers, every mean in two shots at far less than an eighth of the dense bytes."""

import pytest

from bounds.runtime import Constant, RuntimeModel
from gpu_validation.averaging.exchange.parts import TwoShot
from gpu_validation.studies.runs.simulation import simulate
from gpu_validation.studies.runs.spec import TrainingRun
from gpu_validation.workloads import SmallNetwork
from operators import TCDQ, ErrorFeedback, ScaledSign

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
M, STEPS, D = 8, 400, 2410
DENSE_BITS = 2 * 32 * (1 - 1 / M)  # a ring all-reduce of float32 sends so many a coordinate


def trained(steps=STEPS, **settings):
    """Final loss and accuracy, and the bits that a rank has sent a coordinate and step, headers included."""
    run = TrainingRun(SmallNetwork(), schedule=1, step=None, seed=0, steps=steps, points=2, **settings)
    record = simulate(run, RuntimeModel(step=Constant(1.0), m=M))
    sent = (1 - 1 / M) * record["bits"][-1] / (M * steps * D) + 8 * (M - 1) * (32 + 8 + 4) / D
    return record["losses"][-1], record["accuracies"][-1], sent


@pytest.fixture(scope="module")
def exact():
    loss, accuracy, _ = trained()
    return loss, accuracy


@pytest.mark.parametrize(
    "operator", [TCDQ(omega=0.02), ErrorFeedback(ScaledSign())], ids=["unbiased", "both residuals"]
)
def test_training_ends_within_half_a_per_cent_of_exact_gradients(exact, operator):
    loss, accuracy, sent = trained(exchange=TwoShot(operator))

    assert sent <= DENSE_BITS / 8
    assert loss == pytest.approx(exact[0], rel=0.005)
    assert accuracy == pytest.approx(exact[1], abs=0.005)


def test_without_the_owners_residual_signs_end_measurably_away():
    loss, _, _ = trained(150, exchange=TwoShot(ErrorFeedback(ScaledSign()), ScaledSign()))
    assert loss > 1.2 * trained(150)[0]
