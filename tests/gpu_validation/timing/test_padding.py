import pytest

from gpu_validation.timing import PaddedSteps, padding


class Clock:
    """Stands still but for what sleeps or computes; a power of two of seconds leaves no rounding."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(padding, "time", clock)
    return clock


def test_a_short_step_is_filled_up_and_a_long_one_is_left_alone(clock):
    steps = PaddedSteps(step_s=1.0)
    for work_s in (0.0, 0.25, 2.0):
        steps.begin()
        clock.sleep(work_s)
        steps.end()

    assert steps.durations == [1.0, 1.0, 2.0]
    assert steps.overruns == 1


def test_every_step_takes_the_time_drawn_for_it(clock):
    steps = PaddedSteps(step_s=0.0, drawn_s=(4.0, 0.5))
    for _ in range(2):
        steps.begin()
        steps.end()

    assert steps.durations == [4.0, 0.5]
    steps.begin()
    with pytest.raises(IndexError):
        steps.end()


def test_without_padding_nothing_is_added_and_nothing_overruns(clock):
    steps = PaddedSteps(step_s=0.0)
    steps.begin()
    clock.sleep(0.5)
    steps.end()
    assert steps.durations == [0.5]
    assert steps.overruns == 0


def test_by_the_real_clock_no_step_is_shorter_than_it_should_be():
    steps = PaddedSteps(step_s=0.02)
    with steps:
        pass
    assert steps.durations[0] >= 0.02
