import time

import pytest

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
    assert padding.overruns == 1


def test_every_step_takes_the_time_drawn_for_it():
    padding = PaddedSteps(step_s=0.0, drawn_s=(0.1, 0.002))
    for _ in range(2):
        padding.begin()
        padding.end()

    assert padding.durations[0] >= 0.1 > padding.durations[1] >= 0.002
    padding.begin()
    with pytest.raises(IndexError):
        padding.end()


def test_without_padding_nothing_is_added_and_nothing_overruns():
    padding = PaddedSteps(step_s=0.0)
    padding.begin()
    padding.end()
    assert padding.overruns == 0
