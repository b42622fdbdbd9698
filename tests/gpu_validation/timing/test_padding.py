import time

from gpu_validation.timing import PaddedSteps


def test_a_short_step_is_filled_up_and_a_long_one_is_left_alone():
    padding = PaddedSteps(step_s=0.02)
    for work_s in (0.0, 0.04):
        padding.begin()
        time.sleep(work_s)
        padding.end()

    assert padding.durations[0] >= 0.02
    assert padding.durations[1] >= 0.04
    assert len(padding.durations) == 2
