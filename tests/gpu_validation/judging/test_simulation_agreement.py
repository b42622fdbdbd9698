"""A race beside its rehearsal: which losses are compared, and what decides."""

import pytest

from gpu_validation.judging.iteration_time import agreement_rows, compared
from gpu_validation.judging.verdict import Verdict

REAL = {"step": [0, 8, 20], "losses": [3.0, 2.0, 1.0]}
TIMED = {"raced_s": 1.2, "fenced_s": [0.01, 0.03], "scheduling": "normal", "method": "padded"}


def test_losses_are_compared_at_the_steps_that_both_recorded():
    twin = {"step": [0, 8, 16], "losses": [3.0, 2.25, 0.0]}

    assert compared(REAL, twin) == {"compared": 2, "largest_difference": 0.25}


@pytest.mark.parametrize(
    ("difference", "number", "verdict"), [(0.0, 3, "HOLDS"), (1e-16, 3, "VIOLATED"), (0.0, 1, "VIOLATED")]
)
def test_equal_losses_decide(difference, number, verdict):
    record = {**TIMED, "compared": number, "largest_difference": difference}

    same, _ = agreement_rows(record, steps=100, step_s=0.01, tau=10, operator="", workload="")

    assert same.verdict is Verdict[verdict]
    assert same.decides


@pytest.mark.parametrize(("steps", "verdict"), [(100, "HOLDS"), (60, "INCONCLUSIVE")])
def test_seconds_are_held_against_the_model_and_decide_nothing(steps, verdict):
    record = {**TIMED, "compared": 3, "largest_difference": 0.0}

    _, seconds = agreement_rows(record, steps=steps, step_s=0.01, tau=10, operator="", workload="")

    assert seconds.bound == pytest.approx(0.01 + 0.02 / 10)
    assert seconds.measured == pytest.approx(1.2 / steps)
    assert (seconds.verdict, seconds.decides, seconds.tau) == (Verdict[verdict], False, 10)
